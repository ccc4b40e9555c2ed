"""Measure changes to ACLs, SCRAM users and client quotas, and how much they slow other clients down."""
