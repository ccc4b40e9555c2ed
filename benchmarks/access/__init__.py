"""Measure access control: ACLs, SCRAM users and client quotas, and what another client notices of it."""
