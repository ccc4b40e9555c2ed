"""The policy interface of KIP-201 in Python. One policy checks all changes during the life of a topic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kdeclare.core.resources.policy_subjects import PolicyAction, PolicyViolation

__all__ = ["Action", "PolicyViolation", "RequestMetadata", "TopicActionsPolicy", "TopicState"]

Action = PolicyAction
"""An action on a topic: CREATE, MODIFY or DELETE (KIP-201 TopicActionsPolicy.Action)."""


class TopicState(Protocol):
    """A topic before or after a request (KIP-201 TopicActionsPolicy.TopicState).

    The value of a property is fetched when a policy first reads the property, for all topics that are
    evaluated together. Properties that no policy reads cause no requests to the brokers.
    """

    @property
    def num_partitions(self) -> int:
        """The number of partitions."""

    @property
    def replication_factor(self) -> int:
        """The number of replicas of each partition, or the smallest number if it differs between partitions.

        During a reassignment, the target replicas are counted (KIP-860).
        """

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """The broker ids of each partition, the preferred leader first.

        Partitions whose replicas will be placed by Kafka are omitted.
        """

    @property
    def configs(self) -> Mapping[str, str]:
        """The config overrides of the topic, without broker defaults.

        The elements of a list are joined by commas.
        """


class RequestMetadata(Protocol):
    """One request for one topic (KIP-201 TopicActionsPolicy.RequestMetadata).

    The properties and methods after `post_request_state` are additions of kdeclare. Their values are also
    fetched when a policy first reads them.
    """

    @property
    def action(self) -> Action:
        """The action on the topic.

        MODIFY includes changes to configs, partitions, replicas and the replication factor.
        """

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def principal(self) -> str | None:
        """The principal of the request in Kafka's form (``User:alice``), or None without authentication.

        The principal is also None with TLS client authentication, because only the brokers know how to map
        the name in a certificate to a principal.
        """

    @property
    def pre_request_state(self) -> TopicState | None:
        """The topic before the request; None on CREATE."""

    @property
    def post_request_state(self) -> TopicState | None:
        """The topic after the request; None on DELETE."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the topic's manifest. On DELETE, the labels when the topic was last applied."""

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels of the topic when it was last applied. Empty if the topic was never applied."""

    @property
    def changed(self) -> frozenset[str]:
        """The changed fields: ``partitions``, ``replicationFactor``, ``assignments``, ``configs.<key>``.

        On CREATE, all declared fields. On DELETE, an empty set.
        """

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The rack of each broker, by broker id; None for a broker without a rack."""

    @property
    def record_count(self) -> int:
        """The number of offsets between the start and the end of the topic's partitions. On CREATE, 0."""

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the total number of partitions of all topics with these labels after this request.

        The number includes the changes of the plan that were evaluated earlier and not denied. Deletions are
        evaluated first.
        """


class TopicActionsPolicy(ABC):
    """A policy that is evaluated before a topic is created, modified or deleted (KIP-201).

    An instance is constructed without arguments and configured once. ``validate`` is called for one topic at
    a time, but the calls can come from different threads.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:  # noqa: B027  most policies have no settings
        """Apply the settings from the project file. If this raises an exception, users see its message."""

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return None if the request is allowed, and raise PolicyViolation if the request is not allowed.

        Any other exception or return value also denies the request.
        """

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` or ``validate`` acquired."""
