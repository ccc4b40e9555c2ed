"""The tables of snapshots and audits, their records, and where they are stored."""
