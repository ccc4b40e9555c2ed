"""Compare three methods of diffing the Parquet tables of a fleet: Spark, a loop, and DuckDB."""
