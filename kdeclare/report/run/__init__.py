"""Reports on runs: the result of a run, the history of runs, and the current status."""
