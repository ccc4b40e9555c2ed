"""Parse and compare Avro schemas."""
