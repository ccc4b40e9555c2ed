"""The interface of KIP-201 in Python: one policy for the whole life of a topic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kdeclare.core.resources.policy_subjects import PolicyAction, PolicyViolation

__all__ = ["Action", "PolicyViolation", "RequestMetadata", "TopicActionsPolicy", "TopicState"]

Action = PolicyAction
"""What is done to a topic (KIP-201 TopicActionsPolicy.Action)."""


class TopicState(Protocol):
    """A topic before or after a request (KIP-201 TopicActionsPolicy.TopicState).

    Each property is fetched when it is read, for all topics that are judged together: what no policy
    reads costs no request to the brokers.
    """

    @property
    def num_partitions(self) -> int:
        """How many partitions it has."""

    @property
    def replication_factor(self) -> int:
        """Replicas a partition; of partitions that differ, the smallest number.

        A move under way counts as done: replicas are where it is heading (KIP-860).
        """

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """Broker ids by partition, the preferred leader first.

        Partitions that Kafka itself is to place are left out.
        """

    @property
    def configs(self) -> Mapping[str, str]:
        """The overrides of the topic; what the brokers default to is not among them.

        The elements of a list are joined by commas.
        """


class RequestMetadata(Protocol):
    """One request about one topic (KIP-201 TopicActionsPolicy.RequestMetadata).

    The part after `post_request_state` is kdeclare's own, and fetched just as lazily.
    """

    @property
    def action(self) -> Action:
        """What is done to the topic; MODIFY covers configs, partitions, replicas and their number."""

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def principal(self) -> str | None:
        """Who asks, as Kafka's authorizer calls them (``User:alice``); None without authentication.

        Also None with a TLS certificate: what brokers make of its name, only they know.
        """

    @property
    def pre_request_state(self) -> TopicState | None:
        """The topic as it is; None on CREATE."""

    @property
    def post_request_state(self) -> TopicState | None:
        """The topic as it will be; None on DELETE."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of its manifest; on DELETE those that it had when it was last applied."""

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels that the topic had when it was last applied; empty if it never was."""

    @property
    def changed(self) -> frozenset[str]:
        """What the request is about: ``partitions``, ``replicationFactor``, ``assignments``,
        ``configs.<key>``; on CREATE all that was stated, on DELETE nothing."""

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The rack of each broker by its id; None where a broker has none."""

    @property
    def record_count(self) -> int:
        """How many offsets lie between the start and the end of the topic as it is; 0 on CREATE."""

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """How many partitions all topics with these labels have once this is done.

        What the plan asks for before this counts, unless it was denied; deletions come first.
        """


class TopicActionsPolicy(ABC):
    """A policy that is asked before a topic is created, modified or deleted (KIP-201).

    An instance is made without arguments and configured once. ``validate`` is called for one topic at a
    time; not necessarily from the thread that configured it, nor always from the same one.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:  # noqa: B027  most policies have nothing to set
        """Take the settings from the project file. Whatever this raises is shown to people."""

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return if the request is in order.

        Raises PolicyViolation if it is not. Anything else that it raises denies the request as well, and so
        does anything that it returns.
        """

    def close(self) -> None:  # noqa: B027
        """Let go of what ``configure`` or ``validate`` took."""
