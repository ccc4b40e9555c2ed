"""The requests for topics that policies evaluate (KIP-201): from plans, manifests and live clusters."""
