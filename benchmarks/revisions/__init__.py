"""Two revisions of kdeclare, measured by turns on one machine."""
