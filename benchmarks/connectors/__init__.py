"""Measure plans and changes of hundreds of connectors on three Connect workers."""
