"""The state of a team in a compacted Kafka topic."""
