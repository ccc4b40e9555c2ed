"""Secrets: references to them, their hashes, and keeping them out of messages."""
