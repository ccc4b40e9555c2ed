"""Kind `ClientQuota`: limits for users, client ids and IP addresses (KIP-13, KIP-546)."""
