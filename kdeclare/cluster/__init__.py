"""The port to a Kafka cluster and its adapters."""
