"""The client for Kafka Connect workers, and the worker plug-in that handles the requests of the client."""
