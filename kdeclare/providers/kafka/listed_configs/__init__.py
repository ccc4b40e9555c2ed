"""The kinds `GroupConfig` and `ClientMetrics`: configs of groups and client metrics subscriptions."""
