"""Requests about who may do what on a cluster, and how much: ACLs, SCRAM credentials and quotas."""
