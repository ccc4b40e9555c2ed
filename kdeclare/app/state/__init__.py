"""Use cases of ``kdeclare state``: read, change, and copy the stored state and its runs."""
