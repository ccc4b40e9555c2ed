"""A provider for kdeclare: feature flags and the clients that read them."""
