"""Which of the interfaces a policy has, and deprecated ones behind the new one."""

from collections.abc import Mapping
from typing import Any

from kdeclare.core.policy_subjects import ResourcePolicy
from kdeclare.policy.deprecated import (
    AlterConfigAdapter,
    AlterConfigPolicy,
    CreateTopicAdapter,
    CreateTopicPolicy,
)
from kdeclare.policy.interface import RequestMetadata, TopicActionsPolicy

AnyPolicy = TopicActionsPolicy | CreateTopicPolicy | AlterConfigPolicy | ResourcePolicy
"""What can be configured as a policy."""

INTERFACES: tuple[type[AnyPolicy], ...] = (
    TopicActionsPolicy,
    CreateTopicPolicy,
    AlterConfigPolicy,
    ResourcePolicy,
)


def interfaces_of(cls: type) -> tuple[type[AnyPolicy], ...]:
    """Those that a class inherits from. Other people's code is not asked: it could raise."""
    lineage = type.__dict__["__mro__"].__get__(cls)
    return tuple(interface for interface in INTERFACES if interface in lineage)


class BothAdapter(TopicActionsPolicy):
    """Shows a policy that is a CreateTopicPolicy and an AlterConfigPolicy what Kafka shows either."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._adapters = (CreateTopicAdapter(policy), AlterConfigAdapter(policy))

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Pass the settings on, once."""
        self._policy.configure(configs)

    def validate(self, request: RequestMetadata) -> None:
        """Pass on what either is asked about."""
        for adapter in self._adapters:
            adapter.validate(request)

    def close(self) -> None:
        """Close the policy, once."""
        self._policy.close()


def adapted(policy: AnyPolicy) -> TopicActionsPolicy | ResourcePolicy:
    """The policy itself, or one of the deprecated interfaces behind its adapter."""
    has = interfaces_of(type(policy))
    given: Any = policy
    if CreateTopicPolicy in has and AlterConfigPolicy in has:
        return BothAdapter(given)
    if CreateTopicPolicy in has:
        return CreateTopicAdapter(given)
    return AlterConfigAdapter(given) if AlterConfigPolicy in has else given
