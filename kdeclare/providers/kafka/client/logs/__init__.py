"""Requests about the logs of partitions: offsets, sizes and producers."""
