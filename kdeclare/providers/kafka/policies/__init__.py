"""The topic requests that policies evaluate (KIP-201), for plans, manifests and live clusters."""
