"""Groups and their committed offsets, independent of the client library."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.providers.kafka.ids import TopicPartition

KIND = "Group"
"""The kind in the ids of groups (``Group/billing``). A manifest cannot declare a group."""

_CONSUMER_PROTOCOLS = ("", "consumer")
_INACTIVE_STATES = ("Empty", "Dead")

GROUP_STATES = (
    "Stable",
    "Empty",
    "Dead",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
)
"""The state names of all group types (org.apache.kafka.common.GroupState)."""


class GroupType(StrEnum):
    """The protocol that the members of a group use (org.apache.kafka.common.GroupType)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """One group in the list of groups (ListGroups).

    protocol: the protocol type of a classic group, such as ``consumer`` or ``connect``. It is empty if
        clients only committed offsets for the group.
    state: Kafka's name for the state, such as ``Stable`` or ``Empty``.
    """

    id: str
    type: GroupType
    protocol: str
    state: str

    @property
    def is_active(self) -> bool:
        """Whether the group has members. If so, only the members can change its offsets."""
        return self.state not in _INACTIVE_STATES

    @property
    def is_simple(self) -> bool:
        """Whether clients only commit offsets for the group, and choose their partitions themselves.

        Kafka's Admin client calls this a simple consumer group.
        """
        return self.type is GroupType.CLASSIC and not self.protocol

    @property
    def has_consumer_offsets(self) -> bool:
        """Whether consumers use the group, so that it has one committed offset per partition."""
        if self.type is GroupType.CLASSIC:
            return self.protocol in _CONSUMER_PROTOCOLS
        return self.type is GroupType.CONSUMER


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member of a group.

    instance_id: the id of a static member (``group.instance.id``), or None.
    partitions: the partitions that are assigned to the member.
    """

    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def address(self) -> str:
        """The IP address of the member, without the slash that brokers put before it."""
        return self.host.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """One group with its members. members: None if kdeclare cannot describe groups of this type."""

    group: ListedGroup
    members: tuple[GroupMember, ...] | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset(Arguments):
    """The committed offset of one partition.

    leader_epoch: the leader epoch of the last consumed record; None if the consumer did not commit it.
    metadata: the string that the consumer committed with the offset.
    """

    offset: Annotated[int, Field(ge=0)]
    leader_epoch: Annotated[int | None, OMIT_NONE] = None
    metadata: str = ""


GroupOffsets = Mapping[TopicPartition, CommittedOffset]
"""The committed offsets of one group. Partitions without a committed offset are omitted."""

GroupPartition = tuple[str, TopicPartition]
"""A group and a partition."""
