"""Render messages about audits for webhooks."""
