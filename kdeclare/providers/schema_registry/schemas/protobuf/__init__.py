"""Parse and compare Protobuf schemas."""
