"""JSON schemas, in the format of Apache Kafka, of the requests that kafka-python does not implement."""
