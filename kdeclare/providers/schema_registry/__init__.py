"""The provider for schema registries that implement the API of Confluent Schema Registry."""
