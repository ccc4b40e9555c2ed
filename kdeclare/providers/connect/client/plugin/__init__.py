"""The Connect plug-in for dynamic configuration of workers (KIP-1185): Java sources, build, installation."""
