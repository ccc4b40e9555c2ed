"""Snapshots and audits with Spark."""
