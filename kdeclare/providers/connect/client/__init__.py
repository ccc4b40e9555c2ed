"""Clients for Connect's REST API and for kdeclare's worker plug-in, and the plug-in itself."""
