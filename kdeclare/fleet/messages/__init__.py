"""What messages about audits report, and which messages were sent."""
