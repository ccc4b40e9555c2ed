"""Kafka Connect's workers: what is asked of them, and the plug-in that makes them answer."""
