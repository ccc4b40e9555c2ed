"""Compare three methods of diffing a fleet from Parquet files to Parquet files: Spark, a loop, and DuckDB."""
