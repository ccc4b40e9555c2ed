"""The impact of a plan on the access of clients: quotas, permissions and users."""
