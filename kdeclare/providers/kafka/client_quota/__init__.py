"""Kind `ClientQuota`: what users, client ids and IP addresses may ask of the brokers (KIP-13, KIP-546)."""
