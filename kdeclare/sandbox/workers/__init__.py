"""Kafka Connect next to a sandbox's brokers: distributed workers that serve HTTPS on the loopback address."""
