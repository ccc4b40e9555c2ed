"""Resources: kinds, their changes, and optional capabilities of kinds."""
