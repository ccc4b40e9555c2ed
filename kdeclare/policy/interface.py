"""The policy interface of KIP-201 in Python: one policy for the whole life of a topic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kdeclare.core.resources.policy_subjects import PolicyAction, PolicyViolation

__all__ = ["Action", "PolicyViolation", "RequestMetadata", "TopicActionsPolicy", "TopicState"]

Action = PolicyAction
"""The action on a topic (KIP-201 TopicActionsPolicy.Action)."""


class TopicState(Protocol):
    """A topic before or after a request (KIP-201 TopicActionsPolicy.TopicState).

    Each property is fetched when it is first read, for all topics that are evaluated together. Properties
    that no policy reads cause no requests to the brokers.
    """

    @property
    def num_partitions(self) -> int:
        """The number of partitions."""

    @property
    def replication_factor(self) -> int:
        """The number of replicas of each partition. If the partitions differ, it is the smallest number.

        An in-flight reassignment counts as done: the target replicas are used (KIP-860).
        """

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """Broker ids by partition, the preferred leader first.

        Partitions that Kafka itself will place are left out.
        """

    @property
    def configs(self) -> Mapping[str, str]:
        """The topic's config overrides, without broker defaults.

        The elements of a list are joined by commas.
        """


class RequestMetadata(Protocol):
    """One request for one topic (KIP-201 TopicActionsPolicy.RequestMetadata).

    The members after `post_request_state` are additions of kdeclare. They, too, are fetched when first read.
    """

    @property
    def action(self) -> Action:
        """The action on the topic; MODIFY covers configs, partitions, replicas and the replication factor."""

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def principal(self) -> str | None:
        """The principal of the request in Kafka's form (``User:alice``), or None without authentication.

        With TLS client authentication, it is also None, because only the brokers know how they map the name
        in a certificate to a principal.
        """

    @property
    def pre_request_state(self) -> TopicState | None:
        """The topic before the request; None on CREATE."""

    @property
    def post_request_state(self) -> TopicState | None:
        """The topic after the request; None on DELETE."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the topic's manifest; on DELETE, the labels when it was last applied."""

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels when the topic was last applied. Empty if the topic was never applied."""

    @property
    def changed(self) -> frozenset[str]:
        """The changed fields: ``partitions``, ``replicationFactor``, ``assignments``, ``configs.<key>``.

        On CREATE these are all declared fields; on DELETE there are none.
        """

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The rack of each broker, by broker id; None for a broker without a rack."""

    @property
    def record_count(self) -> int:
        """The number of offsets between the start and the end of the existing topic; 0 on CREATE."""

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return how many partitions all topics with these labels have after this request.

        Earlier changes of the plan count, unless they were denied. Deletions come first.
        """


class TopicActionsPolicy(ABC):
    """A policy that is evaluated before a topic is created, modified or deleted (KIP-201).

    An instance is constructed without arguments and configured once. ``validate`` is called for one topic at
    a time, but not necessarily from the thread that configured it, nor always from the same thread.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:  # noqa: B027  most policies have no settings
        """Apply the settings of the project file. Every exception that this raises is shown to the user."""

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return None if the request is allowed.

        Raises PolicyViolation if the request is not allowed. Any other exception or return value also denies
        the request.
        """

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` or ``validate`` acquired."""
