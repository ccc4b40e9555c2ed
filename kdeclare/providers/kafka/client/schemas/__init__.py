"""JSON schemas of requests that kafka-python does not have, in the format of Apache Kafka."""
