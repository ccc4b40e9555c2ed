"""Kafka's original policy interfaces, which KIP-201 deprecates, and adapters that support them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_request import ResourcePolicy
from kdeclare.policy.interface import Action, RequestMetadata, TopicActionsPolicy

_CONFIGS = "configs."


class ConfigScope(StrEnum):
    """The type of a Kafka config resource (ConfigResource.Type)."""

    TOPIC = "TOPIC"
    BROKER = "BROKER"


class ConfigResource(NamedTuple):
    """The resource to which configs belong (org.apache.kafka.common.config.ConfigResource)."""

    scope: ConfigScope
    name: str


class _Configurable:
    """The base class of the two deprecated interfaces.

    A policy is constructed without arguments, configured once, and closed at the end.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Apply the settings in the project file. The message of an exception is shown to users."""

    def close(self) -> None:
        """Release the resources that ``configure`` or ``validate`` acquired."""


class CreateTopicPolicy(_Configurable, ABC):
    """A policy that checks new topics (org.apache.kafka.server.policy.CreateTopicPolicy).

    Deprecated: use `TopicActionsPolicy`, which gets the same data, and also checks modifications and
        deletions.
    """

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """A request to create a topic.

        num_partitions, replication_factor: the counts, including broker defaults; None if the request has
            assignments.
        replicas_assignments: the broker ids of each partition; None if the request has no assignments.
        configs: the configs in the request.
        """

        topic: str
        num_partitions: int | None
        replication_factor: int | None
        replicas_assignments: Mapping[int, Sequence[int]] | None
        configs: Mapping[str, str]

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return None if the request is allowed. Raise PolicyViolation if the request is denied."""


class AlterConfigPolicy(_Configurable, ABC):
    """A policy that checks config changes (org.apache.kafka.server.policy.AlterConfigPolicy).

    As in Kafka, the policy also checks the configs of new topics. Deprecated: use `TopicActionsPolicy`, which
    also gets the previous values of the configs and the other fields of the topic.
    """

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """A request to change configs of a resource. In ``configs``, the value None removes an override."""

        resource: ConfigResource
        configs: Mapping[str, str | None]

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return None if the request is allowed. Raise PolicyViolation if the request is denied."""


class CreateTopicAdapter(TopicActionsPolicy):
    """Adapts a CreateTopicPolicy to the current interface. The policy gets only requests for new topics.

    As in Kafka, a request contains either the partition count and replication factor, or the assignments.
    """

    def __init__(self, policy: CreateTopicPolicy) -> None:
        self._policy = policy

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Configure the adapted policy."""
        self._policy.configure(configs)

    def validate(self, request: RequestMetadata) -> None:
        """Pass a request for a new topic to the adapted policy. As in Kafka, it gets no other requests."""
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
        # return the result, because the caller reports any return value except None as an error
        return self._policy.validate(metadata)

    def close(self) -> None:
        """Close the adapted policy."""
        self._policy.close()


class AlterConfigAdapter(TopicActionsPolicy):
    """Adapts an AlterConfigPolicy to the current interface. The policy gets only the changed configs."""

    def __init__(self, policy: AlterConfigPolicy) -> None:
        self._policy = policy

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Configure the adapted policy."""
        self._policy.configure(configs)

    def validate(self, request: RequestMetadata) -> None:
        """Pass the changed configs to the adapted policy.

        As in Kafka, the policy does not get requests without changed configs.
        """
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
        """Close the adapted policy."""
        self._policy.close()


AnyPolicy = TopicActionsPolicy | CreateTopicPolicy | AlterConfigPolicy | ResourcePolicy
"""The interfaces that policy classes in a project file can implement."""

INTERFACES: tuple[type[AnyPolicy], ...] = (
    TopicActionsPolicy,
    CreateTopicPolicy,
    AlterConfigPolicy,
    ResourcePolicy,
)


def find_interfaces(cls: type) -> tuple[type[AnyPolicy], ...]:
    """Return the policy interfaces that a class implements.

    No code of the class is run, because it could raise an exception.
    """
    lineage = type.__dict__["__mro__"].__get__(cls)
    return tuple(interface for interface in INTERFACES if interface in lineage)


class BothAdapter(TopicActionsPolicy):
    """Adapts a policy that is both a CreateTopicPolicy and an AlterConfigPolicy to the current interface."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._adapters = (CreateTopicAdapter(policy), AlterConfigAdapter(policy))

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Configure the adapted policy once, although it has two interfaces."""
        self._policy.configure(configs)

    def validate(self, request: RequestMetadata) -> None:
        """Pass the request to the policy once for each interface, in the form that the interface defines."""
        for adapter in self._adapters:
            adapter.validate(request)

    def close(self) -> None:
        """Close the adapted policy once, although it has two interfaces."""
        self._policy.close()


def adapt_policy(policy: AnyPolicy) -> TopicActionsPolicy | ResourcePolicy:
    """Return the policy itself, or an adapter if the policy implements a deprecated interface."""
    interfaces = find_interfaces(type(policy))
    deprecated_policy: Any = policy
    if CreateTopicPolicy in interfaces and AlterConfigPolicy in interfaces:
        return BothAdapter(deprecated_policy)
    if CreateTopicPolicy in interfaces:
        return CreateTopicAdapter(deprecated_policy)
    return AlterConfigAdapter(deprecated_policy) if AlterConfigPolicy in interfaces else deprecated_policy
