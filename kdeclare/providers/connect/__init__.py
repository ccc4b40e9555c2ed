"""Kafka Connect: dynamic configuration of workers."""
