"""Providers: what a provider declares, how providers are found, and how they connect to their systems."""
