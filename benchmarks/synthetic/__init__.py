"""Fleets that are made up: what their topics are like, and the rows of both tables."""
