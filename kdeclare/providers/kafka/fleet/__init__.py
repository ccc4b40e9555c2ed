"""Kafka in fleets: topics and dynamic configs as plain data, facts about them, and the audit rules."""
