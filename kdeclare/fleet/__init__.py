"""Fleets of clusters: snapshots, audits and plans. Only `fleet.spark` imports pyspark."""
