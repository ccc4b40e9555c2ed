"""The ad hoc commands of Kafka and their output. They are loaded by entry points; nothing else imports it."""
