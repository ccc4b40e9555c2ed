"""The Kafka provider: topics, configs, client quotas and partition reassignments."""
