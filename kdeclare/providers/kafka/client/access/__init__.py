"""Requests about ACLs, SCRAM credentials and client quotas."""
