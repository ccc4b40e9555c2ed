"""The client for Kafka Connect workers, and the plug-in that serves its requests."""
