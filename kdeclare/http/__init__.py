"""The HTTP client for providers whose systems have a REST API, and for messages to webhooks."""
