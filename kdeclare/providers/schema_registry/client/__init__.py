"""The client for schema registries: the interface and its implementation over HTTP."""
