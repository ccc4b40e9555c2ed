"""Everything that uses Spark."""
