"""Kafka Connect in a sandbox: distributed workers that serve HTTPS on the loopback address."""
