"""The policy interface of KIP-201 in Python. A policy checks all changes during the life of a topic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_request import PolicyAction, PolicyViolation

__all__ = [
    "Action",
    "KnownImpact",
    "PolicyViolation",
    "RequestMetadata",
    "TopicActionsPolicy",
    "TopicImpact",
    "TopicState",
]

Action = PolicyAction
"""An action on a topic: CREATE, MODIFY or DELETE (KIP-201 TopicActionsPolicy.Action)."""


class TopicState(Protocol):
    """A topic before or after a request (KIP-201 TopicActionsPolicy.TopicState).

    A property is fetched when a policy first reads it, for all topics that are evaluated together. Unused
    properties cause no requests to the brokers.
    """

    @property
    def num_partitions(self) -> int:
        """The number of partitions."""

    @property
    def replication_factor(self) -> int:
        """The number of replicas of each partition. If the numbers differ, the smallest of them.

        During a reassignment, the target replicas are counted (KIP-860).
        """

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """The broker ids of each partition, with the preferred leader first.

        Partitions whose replicas Kafka will place are omitted.
        """

    @property
    def configs(self) -> Mapping[str, str]:
        """The config overrides of the topic, without broker defaults.

        A list value is a string with commas between the elements.
        """


class TopicImpact(Protocol):
    """The current impact of a request on the records, consumers and producers of its topic.

    A property is fetched when a policy first reads it, for all similar requests together. Numbers are upper
    bounds. If kdeclare cannot determine a property, for example because a permission is missing, reading the
    property raises PolicyViolation with the reason, so that the request is denied. On CREATE, nothing is
    fetched, and all numbers are 0.
    """

    @property
    def records(self) -> int:
        """The number of records in the topic: the number of offsets from start to end, for all partitions."""

    @property
    def bytes(self) -> int:
        """The size of the topic in bytes, counting only leader replicas. Unknown with tiered storage."""

    @property
    def deleted_records(self) -> int:
        """The number of records that Kafka deletes because of the request."""

    @property
    def deleted_bytes(self) -> int:
        """The number of bytes that Kafka deletes because of the request. Unknown with tiered storage."""

    @property
    def unread_records(self) -> int:
        """The number of records that the request deletes and that at least one group has not read."""

    @property
    def unread_groups(self) -> Sequence[str]:
        """The ids of the groups that have not read all of the records that the request deletes."""

    @property
    def active_consumers(self) -> int:
        """The number of consumer group members that are assigned partitions of the topic.

        Consumers without a group are not counted.
        """

    @property
    def active_groups(self) -> Sequence[str]:
        """The ids of the groups whose members are assigned partitions of the topic."""

    @property
    def active_producers(self) -> int:
        """The number of producers that have an open transaction or wrote a record within the last hour.

        Producers without idempotence are not counted.
        """

    @property
    def last_write_ms(self) -> int | None:
        """The timestamp of the newest record in milliseconds since 1970; None if there are no records."""


@dataclass(frozen=True, slots=True)
class KnownImpact:
    """A `TopicImpact` with given values. The default is the impact of creating a topic."""

    records: int = 0
    bytes: int = 0
    deleted_records: int = 0
    deleted_bytes: int = 0
    unread_records: int = 0
    unread_groups: Sequence[str] = ()
    active_consumers: int = 0
    active_groups: Sequence[str] = ()
    active_producers: int = 0
    last_write_ms: int | None = None


class RequestMetadata(Protocol):
    """A request for one topic (KIP-201 TopicActionsPolicy.RequestMetadata).

    The properties and methods after `post_request_state` are not part of KIP-201. Their values are also
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

        The principal is also None with TLS client authentication, because only the brokers can map the name
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
        """The labels in the topic's manifest. On DELETE, the labels when the topic was last applied."""

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels when the topic was last applied. Empty if the topic was never applied."""

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
        """The total number of offsets from the start to the end of the topic's partitions. On CREATE, 0.

        This number is an upper bound for the number of records.
        """

    @property
    def impact(self) -> TopicImpact:
        """The impact of the request on the records, consumers and producers of the topic."""

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the total number of partitions of all topics with these labels after this request.

        The number includes earlier changes of the same plan that were not denied. Deletions are evaluated
        first.
        """


class TopicActionsPolicy(ABC):
    """A policy that is evaluated before a topic is created, modified or deleted (KIP-201).

    A policy is constructed without arguments and configured once. Calls of ``validate`` do not overlap, but
    they can come from different threads.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:  # noqa: B027  most policies have no settings
        """Apply the settings in the project file. The message of an exception is shown to users."""

    @abstractmethod
    def validate(self, request: RequestMetadata) -> None:
        """Return None if the request is allowed. Raise PolicyViolation if the request is denied.

        Any other exception or return value also denies the request.
        """

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` or ``validate`` acquired."""
