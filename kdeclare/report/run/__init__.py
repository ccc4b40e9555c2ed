"""Reports on runs: the result of one, the history, and the status of what is in progress."""
