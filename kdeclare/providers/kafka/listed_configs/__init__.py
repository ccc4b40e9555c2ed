"""Groups and client metrics subscriptions: resources that consist of configs, which Kafka lists by name."""
