"""The diff of a fleet, Parquet to Parquet: Spark beside a plain loop and DuckDB around the same function."""
