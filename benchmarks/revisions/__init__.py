"""Compare two revisions of kdeclare, alternating on one machine."""
