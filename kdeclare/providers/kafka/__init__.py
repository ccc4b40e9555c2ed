"""Kafka: topics, broker configs and reassignments."""
