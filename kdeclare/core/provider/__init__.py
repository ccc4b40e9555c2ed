"""Providers: what one declares, how they are found, connected to and examined."""
