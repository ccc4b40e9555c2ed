"""Checks of a Kafka cluster for `kdeclare doctor`."""
