"""States in Kafka topics, on real brokers."""
