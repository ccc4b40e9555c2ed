"""What is done about Kafka Connect's workers."""
