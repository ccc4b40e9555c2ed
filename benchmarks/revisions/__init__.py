"""Compare the cost of two revisions of kdeclare, which run alternately on one machine."""
