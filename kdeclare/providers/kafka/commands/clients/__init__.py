"""Quotas and SCRAM credentials in ``kdeclare config``: for users, client ids and IP addresses."""
