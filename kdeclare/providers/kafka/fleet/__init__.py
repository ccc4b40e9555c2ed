"""Kafka in fleets: topics and dynamic configs as plain data, their facts, and the audit rules."""
