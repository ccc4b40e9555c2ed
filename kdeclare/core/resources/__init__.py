"""Resources: kinds, their changes and what a kind may offer besides."""
