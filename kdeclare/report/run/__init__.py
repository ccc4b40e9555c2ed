"""Reports on runs: the result of a run, the history, and the current status."""
