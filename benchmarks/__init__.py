"""Benchmarks of kdeclare against the bare requests that its work needs; see README.md."""
