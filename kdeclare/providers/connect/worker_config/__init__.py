"""The kind `ConnectWorkerConfig`: overrides that the workers of a Connect cluster share (KIP-1185)."""
