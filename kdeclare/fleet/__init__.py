"""Fleets of clusters: snapshots, drift audits and plans. Only `fleet.spark` imports pyspark."""
