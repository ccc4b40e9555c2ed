"""Use cases for fleets."""
