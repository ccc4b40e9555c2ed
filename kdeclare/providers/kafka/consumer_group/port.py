"""The `Groups` protocol: all requests of kdeclare about groups and their offsets."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kdeclare.core.live.faults import Result
from kdeclare.providers.kafka.consumer_group.group import (
    CommittedOffset,
    DescribedGroup,
    GroupOffsets,
    GroupPartition,
    ListedGroup,
)
from kdeclare.providers.kafka.ids import TopicPartition

GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
"""Kafka's error name for a group that does not exist."""

NON_EMPTY_GROUP = "NON_EMPTY_GROUP"
"""Kafka's error name for the deletion of a group that has members."""

UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
"""Kafka's error name for offsets that a client commits for a group that has members."""

OffsetChanges = Mapping[TopicPartition, CommittedOffset | None]
"""The new offsets of one group. None deletes the committed offset."""


class Groups(Protocol):
    """The groups of one cluster.

    Every method raises Fault if the whole request fails. As in `Cluster`, methods that write return a Result
    for every item and do not retry requests.
    """

    def list_groups(self) -> Mapping[str, ListedGroup]:
        """Return all groups that the principal is permitted to describe (ListGroups), by id."""

    def describe_groups(self, ids: Sequence[str]) -> Mapping[str, DescribedGroup]:
        """Return the named groups that exist, with their members.

        Sends DescribeGroups for classic groups and ConsumerGroupDescribe (KIP-848) for consumer groups.
        """

    def fetch_offsets(self, ids: Sequence[str]) -> Mapping[str, GroupOffsets]:
        """Return the committed offsets of each named group (OffsetFetch). A missing group has no offsets."""

    def alter_offsets(self, changes: Mapping[str, OffsetChanges]) -> Mapping[GroupPartition, Result]:
        """Commit and delete offsets (OffsetCommit, OffsetDelete).

        Committing an offset creates a missing group. Kafka accepts offsets outside the log. For a group with
        members, Kafka returns UNKNOWN_MEMBER_ID.
        """

    def delete_groups(self, ids: Sequence[str]) -> Mapping[str, Result]:
        """Delete groups with all their offsets (DeleteGroups). Kafka does not delete groups with members."""
