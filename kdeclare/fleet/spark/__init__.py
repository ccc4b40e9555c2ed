"""All that knows Spark."""
