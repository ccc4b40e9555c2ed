"""The ad hoc commands for schema registries and their output. Entry points load this package when needed."""
