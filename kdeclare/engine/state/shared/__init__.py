"""The state that a team shares: its objects, their formats, and the lease of the process that may write."""
