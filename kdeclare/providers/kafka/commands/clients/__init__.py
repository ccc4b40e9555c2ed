"""The part of ``kdeclare config`` for users, client ids and IP addresses: quotas and SCRAM credentials."""
