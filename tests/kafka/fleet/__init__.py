"""Fleets of real clusters."""
