"""Kafka's own policy interfaces, which KIP-201 deprecates, and how they are put behind the new one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.policy_subjects import ResourcePolicy
from kdeclare.policy.interface import Action, RequestMetadata, TopicActionsPolicy

_CONFIGS = "configs."


class ConfigScope(StrEnum):
    """The types of Kafka config resource in use (ConfigResource.Type)."""

    TOPIC = "TOPIC"
    BROKER = "BROKER"


class ConfigResource(NamedTuple):
    """What a config belongs to (org.apache.kafka.common.config.ConfigResource)."""

    scope: ConfigScope
    name: str


class _Configurable:
    """What both have in common: made without arguments, configured once, closed at the end."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Take the settings from the project file. Whatever this raises is shown to people."""

    def close(self) -> None:
        """Let go of what ``configure`` or ``validate`` took."""


class CreateTopicPolicy(_Configurable, ABC):
    """A policy that is asked before a topic is created (org.apache.kafka.server.policy.CreateTopicPolicy).

    Deprecated: `TopicActionsPolicy` sees the same and the rest of a topic's life.
    """

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """The topic to be created.

        num_partitions, replication_factor: with the brokers' defaults filled in; None with assignments.
        replicas_assignments: broker ids by partition, where the request states them; None without.
        configs: what the request states.
        """

        topic: str
        num_partitions: int | None
        replication_factor: int | None
        replicas_assignments: Mapping[int, Sequence[int]] | None
        configs: Mapping[str, str]

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return if the request is in order. Raises PolicyViolation if it is not."""


class AlterConfigPolicy(_Configurable, ABC):
    """A policy that is asked before configs are altered (org.apache.kafka.server.policy.AlterConfigPolicy).

    Kafka asks it about the configs of new topics, too. Deprecated: it sees neither what a config was
    before nor anything else of the topic; `TopicActionsPolicy` does.
    """

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """What is altered: of the resource, these configs and no others; None takes an override away."""

        resource: ConfigResource
        configs: Mapping[str, str | None]

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return if the request is in order. Raises PolicyViolation if it is not."""


class CreateTopicAdapter(TopicActionsPolicy):
    """Shows a CreateTopicPolicy what Kafka would show it: creations, as counts or as assignments."""

    def __init__(self, policy: CreateTopicPolicy) -> None:
        self._policy = policy

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Pass the settings on."""
        self._policy.configure(configs)

    def validate(self, request: RequestMetadata) -> None:
        """Pass a creation on; Kafka does not ask about anything else."""
        post = request.post_request_state
        if request.action is not Action.CREATE or post is None:
            return None
        has_assignments = "assignments" in request.changed
        metadata = CreateTopicPolicy.RequestMetadata(
            topic=request.topic,
            num_partitions=None if has_assignments else post.num_partitions,
            replication_factor=None if has_assignments else post.replication_factor,
            replicas_assignments=post.replicas_assignments if has_assignments else None,
            configs=post.configs,
        )
        # whoever asks is told what it returns: anything is a mistake
        return self._policy.validate(metadata)

    def close(self) -> None:
        """Close the policy."""
        self._policy.close()


class AlterConfigAdapter(TopicActionsPolicy):
    """Shows an AlterConfigPolicy what Kafka would show it: the configs that a request is about."""

    def __init__(self, policy: AlterConfigPolicy) -> None:
        self._policy = policy

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Pass the settings on."""
        self._policy.configure(configs)

    def validate(self, request: RequestMetadata) -> None:
        """Pass configs on; Kafka does not ask about a request without any."""
        post = request.post_request_state
        keys = sorted(f.removeprefix(_CONFIGS) for f in request.changed if f.startswith(_CONFIGS))
        if post is None or not keys:
            return None
        configs = post.configs
        resource = ConfigResource(ConfigScope.TOPIC, request.topic)
        delta = {key: configs.get(key) for key in keys}
        metadata = AlterConfigPolicy.RequestMetadata(resource, delta)
        return self._policy.validate(metadata)

    def close(self) -> None:
        """Close the policy."""
        self._policy.close()


AnyPolicy = TopicActionsPolicy | CreateTopicPolicy | AlterConfigPolicy | ResourcePolicy
"""What can be configured as a policy."""

INTERFACES: tuple[type[AnyPolicy], ...] = (
    TopicActionsPolicy,
    CreateTopicPolicy,
    AlterConfigPolicy,
    ResourcePolicy,
)


def find_interfaces(cls: type) -> tuple[type[AnyPolicy], ...]:
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


def adapt_policy(policy: AnyPolicy) -> TopicActionsPolicy | ResourcePolicy:
    """The policy itself, or one of the deprecated interfaces behind its adapter."""
    interfaces = find_interfaces(type(policy))
    deprecated_policy: Any = policy
    if CreateTopicPolicy in interfaces and AlterConfigPolicy in interfaces:
        return BothAdapter(deprecated_policy)
    if CreateTopicPolicy in interfaces:
        return CreateTopicAdapter(deprecated_policy)
    return AlterConfigAdapter(deprecated_policy) if AlterConfigPolicy in interfaces else deprecated_policy
