"""The ad hoc commands for Kafka and their output. Only entry points load this package."""
