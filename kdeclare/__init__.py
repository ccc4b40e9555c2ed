"""Declarative reconciliation for Apache Kafka."""
