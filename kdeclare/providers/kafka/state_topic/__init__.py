"""Store the state that a team shares in a compacted Kafka topic."""
