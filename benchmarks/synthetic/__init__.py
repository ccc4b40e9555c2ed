"""Synthetic fleets: their topics, and the tables of declared and live topics."""
