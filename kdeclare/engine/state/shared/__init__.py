"""States that a team shares: how they are stored as objects, and the lease that allows a process to write."""
