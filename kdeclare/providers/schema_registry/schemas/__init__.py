"""Parse and compare the texts of schemas, offline: Avro, JSON Schema and Protobuf."""
