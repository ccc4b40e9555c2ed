"""The command ``kdeclare impact``."""
