"""The provider for Kafka Connect: connectors, and the dynamic configuration of workers (KIP-1185)."""
