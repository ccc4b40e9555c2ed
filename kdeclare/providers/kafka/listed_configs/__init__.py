"""The kinds `GroupConfig` and `ClientMetrics`. Kafka lists the names of resources with such configs."""
