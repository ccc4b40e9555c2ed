"""Fleets of clusters: snapshots, audits and plans. Only the package `fleet.spark` imports pyspark."""
