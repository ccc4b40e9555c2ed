"""The contents of messages about audits, and the records of messages that were sent."""
