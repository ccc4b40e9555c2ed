"""Reports on fleets: plans, applies, snapshots and audits."""
