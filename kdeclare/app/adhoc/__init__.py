"""Use cases of ad hoc commands: the commands with which users change resources without a manifest."""
