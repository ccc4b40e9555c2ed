"""The catalog of a project or a fleet."""
