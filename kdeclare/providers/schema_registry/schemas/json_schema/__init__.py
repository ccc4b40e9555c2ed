"""Parse and compare JSON Schemas."""
