"""Secrets: references, hashes, and the removal of secret values from messages."""
