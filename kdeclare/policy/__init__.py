"""Policies for topics (KIP-201) and other kinds: the interfaces that custom policies implement.

`kdeclare.policy.rules` has policies that only need settings. Manifests of kind Policy need no code either.
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
