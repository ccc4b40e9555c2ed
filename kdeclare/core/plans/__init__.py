"""Plans: their values, the context in which kinds plan, the policy gate, runs and states."""
