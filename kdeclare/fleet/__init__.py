"""Many clusters at once: snapshots, drift audits and plans. Only `fleet.spark` imports pyspark."""
