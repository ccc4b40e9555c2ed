"""The workers' plug-in for dynamic configuration (KIP-1185): Java sources, build and installation."""
