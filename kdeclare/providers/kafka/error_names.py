"""Kafka's names of errors that kdeclare handles."""

CLUSTER_AUTHORIZATION_FAILED = "CLUSTER_AUTHORIZATION_FAILED"
TOPIC_AUTHORIZATION_FAILED = "TOPIC_AUTHORIZATION_FAILED"
GROUP_AUTHORIZATION_FAILED = "GROUP_AUTHORIZATION_FAILED"

UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
"""Kafka's error name for a request that the brokers do not support."""

UNAVAILABLE = (CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION)
"""The errors for requests that will always fail: not permitted, or not supported by the brokers.

Managed clusters also return these errors for everything that they hide from clients.
"""

SECURITY_DISABLED = "SECURITY_DISABLED"
"""Kafka's error name for ACL requests to brokers that have no authorizer."""

POLICY_VIOLATION = "POLICY_VIOLATION"
"""Kafka's error name for a request that violates a policy of the brokers."""

TOPIC_EXISTS = "TOPIC_ALREADY_EXISTS"

QUOTA_EXCEEDED = "THROTTLING_QUOTA_EXCEEDED"
"""Kafka's error name for a change that exceeds the controller mutation quota (KIP-599)."""

QUOTA_HINT = (
    "Wait and run the command again, or request a higher controller_mutation_rate for this user and client "
    "id. Every partition that is created, added or deleted counts against this quota."
)
