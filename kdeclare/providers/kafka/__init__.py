"""The Kafka provider: topics, configs, ACLs, client quotas, SCRAM users, groups and reassignments."""
