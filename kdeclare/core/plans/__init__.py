"""Plans, runs and states as data, the planning hooks, and the policy gate."""
