"""The HTTP client of providers whose systems have a REST API, and of messages to webhooks."""
