"""Reports on fleets: plan, apply, snapshots and audits. Audits are also rendered as Markdown and HTML."""
