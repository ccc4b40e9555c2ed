"""Snapshots and audits of small fleets in this process, without Spark or Java."""
