"""What policies see of topics (KIP-201), in plans, in manifests and in a cluster as it is."""
