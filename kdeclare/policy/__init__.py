"""The interfaces that custom policies implement, for topics (KIP-201) and for other kinds.

Policies can also be defined without custom code: with manifests of kind Policy, or with the ready-made rules
in `kdeclare.policy.rules`.
"""

from kdeclare.core.policies.policy_request import ResourcePolicy, ResourceRequest
from kdeclare.policy.deprecated import AlterConfigPolicy, CreateTopicPolicy
from kdeclare.policy.interface import (
    Action,
    PolicyViolation,
    RequestMetadata,
    TopicActionsPolicy,
    TopicImpact,
    TopicState,
)

__all__ = [
    "Action",
    "AlterConfigPolicy",
    "CreateTopicPolicy",
    "PolicyViolation",
    "RequestMetadata",
    "ResourcePolicy",
    "ResourceRequest",
    "TopicActionsPolicy",
    "TopicImpact",
    "TopicState",
]
