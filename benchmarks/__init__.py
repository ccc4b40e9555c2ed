"""Benchmarks that compare kdeclare with programs that only send the same requests (see README.md)."""
