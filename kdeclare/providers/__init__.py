"""The built-in providers: one package for each external system."""
