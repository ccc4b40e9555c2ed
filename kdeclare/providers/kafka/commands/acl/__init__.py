"""The command ``kdeclare acl``."""
