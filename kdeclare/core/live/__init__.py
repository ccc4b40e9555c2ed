"""Collectors and codecs of live state, and the faults that systems report."""
