"""Earlier snapshots and audits: the versions of an object, and how long findings were open."""
