"""Scripts that developers or make run."""
