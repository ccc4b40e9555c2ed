"""Benchmarks that compare kdeclare with the bare requests of the same work (see README.md)."""
