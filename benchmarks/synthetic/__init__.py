"""Synthetic fleets: the shapes of their topics, and the rows of both tables."""
