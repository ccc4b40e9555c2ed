"""The interface of the systems in which teams share a state."""
