"""Replica reassignments: placement, batching, throttles, elections."""
