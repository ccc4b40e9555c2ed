"""Plans, runs and states as data, the hooks of planning, and the policy gate."""
