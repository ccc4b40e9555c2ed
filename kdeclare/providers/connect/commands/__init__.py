"""The ad hoc commands for Connect, with their output. Loaded through entry points only."""
