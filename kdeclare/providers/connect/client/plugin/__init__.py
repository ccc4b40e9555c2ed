"""The Connect plug-in for dynamic worker configs (KIP-1185): its Java sources, build and installation."""
