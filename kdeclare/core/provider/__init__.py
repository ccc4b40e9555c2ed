"""The definition, installation and options of providers, and the connections to their systems."""
