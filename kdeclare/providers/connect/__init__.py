"""The provider for Kafka Connect, which manages the dynamic configuration of workers."""
