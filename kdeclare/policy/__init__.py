"""Policies for topics (KIP-201) and other kinds: the interfaces that custom policies implement.

Policies without custom code are manifests of kind Policy, and the ready-made rules in
`kdeclare.policy.rules`.
"""

from kdeclare.core.resources.policy_subjects import ResourcePolicy, ResourceRequest
from kdeclare.policy.deprecated import AlterConfigPolicy, CreateTopicPolicy
from kdeclare.policy.interface import (
    Action,
    PolicyViolation,
    RequestMetadata,
    TopicActionsPolicy,
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
    "TopicState",
]
