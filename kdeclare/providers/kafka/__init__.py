"""The Kafka provider: topics, broker configs, client quotas and partition reassignments."""
