"""Kafka Connect: the dynamic configuration of workers."""
