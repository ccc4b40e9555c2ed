"""The command ``kdeclare usage``."""
