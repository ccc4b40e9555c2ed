"""The ad hoc commands of Kafka, with what they do and print. Entry points lead here; nothing imports it."""
