"""Plans: their values, the hooks and context of planning, the policy gate, runs and states."""
