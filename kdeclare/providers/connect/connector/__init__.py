"""Connectors of Connect clusters: the kind `Connector`, its operations, and its planning."""
