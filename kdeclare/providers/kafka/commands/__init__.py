"""The ad hoc commands for Kafka and their output. This package is only loaded through entry points."""
