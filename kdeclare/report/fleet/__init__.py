"""Reports on fleets: plan and apply, snapshots, and audits as text, Markdown, HTML page and JSON."""
