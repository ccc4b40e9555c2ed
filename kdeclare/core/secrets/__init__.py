"""Secrets: references, hashes, and removal of secret values from messages."""
