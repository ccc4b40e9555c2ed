"""What fleets compare of Kafka: topics and dynamic configs as plain data, facts, and words for audits."""
