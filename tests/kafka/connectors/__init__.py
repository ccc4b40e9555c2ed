"""Connectors on real Connect workers: faults, and records that flow while configs change."""
