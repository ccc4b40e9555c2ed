"""The diff of a fleet, Parquet to Parquet: Spark compared with a plain loop and with DuckDB."""
