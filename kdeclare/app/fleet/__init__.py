"""Use-cases of fleets."""
