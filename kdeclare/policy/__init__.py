"""Policies about topics (KIP-201) and other kinds: the interfaces that policies of one's own implement.

`kdeclare.policy.rules` has policies that need settings only, and manifests of kind Policy need no code.
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
