"""A schema registry in a sandbox: Apicurio Registry with its API for clients of Confluent Schema Registry."""
