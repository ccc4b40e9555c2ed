"""What a plan means for the access of clients: quotas, permissions and users."""
