"""The command ``kdeclare connector``: list, describe and change connectors ad hoc."""
