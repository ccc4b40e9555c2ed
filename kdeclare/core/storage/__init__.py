"""The interface to the storage systems in which teams share a state."""
