"""The requests about topics that policies evaluate (KIP-201): for plans, manifests and live clusters."""
