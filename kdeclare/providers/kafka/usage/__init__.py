"""Who writes and reads topics, and when a record was last written."""
