"""The groups of the in-memory cluster, and the offsets of its logs.

Modeled on GroupCoordinatorService of Apache Kafka 4.3. A group remembers offsets by topic id, so that a topic
that was deleted and created again has no committed offsets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdeclare.core.live.faults import Fault, Result
from kdeclare.providers.kafka.acl.binding import GROUP, TOPIC
from kdeclare.providers.kafka.consumer_group.group import (
    CommittedOffset,
    DescribedGroup,
    GroupMember,
    GroupOffsets,
    GroupPartition,
    GroupType,
    ListedGroup,
)
from kdeclare.providers.kafka.consumer_group.port import (
    GROUP_ID_NOT_FOUND,
    NON_EMPTY_GROUP,
    UNKNOWN_MEMBER_ID,
    OffsetChanges,
)
from kdeclare.providers.kafka.error_names import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST, ActiveProducer, LogPosition, RecordBatch
from kdeclare.providers.kafka.testing.batches import fetch_batches
from kdeclare.providers.kafka.testing.topics import TopicState

if TYPE_CHECKING:
    from kdeclare.providers.kafka.testing.cluster import MemoryCluster

_EMPTY, _STABLE = "Empty", "Stable"
_UNKNOWN_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass
class GroupRecord:
    """One group. members: its current members. offsets: its committed offsets, by topic id and partition."""

    type: GroupType = GroupType.CLASSIC
    protocol: str = ""
    members: list[GroupMember] = field(default_factory=list)
    offsets: dict[tuple[str, int], CommittedOffset] = field(default_factory=dict)

    @property
    def topics(self) -> frozenset[str]:
        """The topics whose partitions are assigned to members."""
        return frozenset(where.topic for member in self.members for where in member.partitions)


@dataclass
class GroupStore:
    """The groups of the in-memory cluster, and the offsets, timestamps, producers and batches of its logs.

    starts: the first offset of each partition whose first records were deleted.
    times: for some partitions, the timestamp of each record, from offset 0.
    last_times: by topic id, the timestamp of all records in partitions that are not in ``times``; the default
        is 0.
    producers: the active producers of each partition.
    batches: the last batches of each partition. Each earlier record has a batch of its own and no key.
    """

    groups: dict[str, GroupRecord] = field(default_factory=dict)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    times: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    last_times: dict[str, int] = field(default_factory=dict)
    producers: dict[tuple[str, int], tuple[ActiveProducer, ...]] = field(default_factory=dict)
    batches: dict[tuple[str, int], tuple[RecordBatch, ...]] = field(default_factory=dict)

    def list_group(self, id_: str) -> ListedGroup:
        """Return one group as ListGroups returns it."""
        record = self.groups[id_]
        return ListedGroup(id_, record.type, record.protocol, _STABLE if record.members else _EMPTY)

    def find_last_time(self, topic: TopicState, partition: int) -> int | None:
        """Return the latest timestamp in a partition; None if it is empty."""
        start, end = (self.find_offset(topic, partition, at) for at in (EARLIEST, LATEST))
        times = self.times.get((topic.topic_id, partition))
        if times is not None:
            return max(times[start:end], default=None)
        return self.last_times.get(topic.topic_id, 0) if start < end else None

    def find_position(self, topic: TopicState, partition: int, at: int) -> LogPosition:
        """Return what ListOffsets returns for a timestamp: an offset, and the timestamp of its record."""
        offset = self.find_offset(topic, partition, at)
        if at in (EARLIEST, LATEST) or offset < 0:
            return LogPosition(offset, -1)
        times = self.times.get((topic.topic_id, partition))
        return LogPosition(offset, self.last_times.get(topic.topic_id, 0) if times is None else times[offset])

    def find_offset(self, topic: TopicState, partition: int, at: int) -> int:
        """Return the offset that ListOffsets returns for a timestamp; -1 if there is none."""
        if at < EARLIEST:
            raise Fault("UNSUPPORTED_VERSION", "offsets at this time")
        key = (topic.topic_id, partition)
        count, extra = divmod(topic.records, len(topic.partitions))
        end = count + (partition < extra)
        start = min(self.starts.get(key, 0), end)
        if at in (EARLIEST, LATEST):
            return start if at == EARLIEST else end
        times = self.times.get(key)
        if times is None:
            return start if start < end and self.last_times.get(topic.topic_id, 0) >= at else -1
        # Timestamps are in no order if producers set them.
        return next((offset for offset in range(start, min(end, len(times))) if times[offset] >= at), -1)

    def fetch_batches(
        self, topic: TopicState, partition: int, position: int, max_bytes: int, max_records: int
    ) -> tuple[RecordBatch, ...]:
        """Return the batches of a partition from an offset, as Fetch does. Raises Fault."""
        bounds = (self.find_offset(topic, partition, EARLIEST), self.find_offset(topic, partition, LATEST))
        last = self.batches.get((topic.topic_id, partition), ())
        return fetch_batches(last, bounds, position, max_bytes, max_records)


class MemoryGroups:
    """The groups of a `MemoryCluster`; see `Groups`."""

    def __init__(self, cluster: "MemoryCluster") -> None:
        self._cluster = cluster

    @property
    def _store(self) -> GroupStore:
        return self._cluster._state.group_store

    def list_groups(self) -> Mapping[str, ListedGroup]:
        """See `Groups.list_groups`."""

        def respond() -> dict[str, ListedGroup]:
            lists_all = self._cluster._access.is_allowed("DESCRIBE")
            visible = [id_ for id_ in self._store.groups if lists_all or self._is_visible(id_)]
            return {id_: self._store.list_group(id_) for id_ in visible}

        with self._cluster._lock:
            return self._cluster._handle_read("list_groups", (), respond)

    def describe_groups(self, ids: Sequence[str]) -> Mapping[str, DescribedGroup]:
        """See `Groups.describe_groups`."""

        def respond() -> dict[str, DescribedGroup]:
            listed = self.list_groups()
            return {id_: self._describe(id_) for id_ in dict.fromkeys(ids) if id_ in listed}

        with self._cluster._lock:
            return self._cluster._handle_read("describe_groups", ids, respond)

    def _describe(self, id_: str) -> DescribedGroup:
        self._require("DESCRIBE", id_)
        record = self._store.groups[id_]
        has_members = record.type in (GroupType.CLASSIC, GroupType.CONSUMER)
        return DescribedGroup(self._store.list_group(id_), tuple(record.members) if has_members else None)

    def fetch_offsets(self, ids: Sequence[str]) -> Mapping[str, GroupOffsets]:
        """See `Groups.fetch_offsets`."""

        def respond() -> dict[str, GroupOffsets]:
            return {id_: self._read_offsets(id_) for id_ in ids}

        with self._cluster._lock:
            return self._cluster._handle_read("fetch_offsets", ids, respond)

    def _is_visible(self, id_: str) -> bool:
        return self._cluster._access.is_allowed("DESCRIBE", GROUP, id_)

    def _require(self, operation: str, id_: str) -> None:
        """Raise Fault if the client may not perform the operation on the group or find its coordinator."""
        access = self._cluster._access
        if not (self._is_visible(id_) and access.is_allowed(operation, GROUP, id_)):
            raise Fault(GROUP_AUTHORIZATION_FAILED, f"group {id_}")

    def _read_offsets(self, id_: str) -> GroupOffsets:
        self._require("DESCRIBE", id_)
        record = self._store.groups.get(id_, GroupRecord())
        names = {topic.topic_id: name for name, topic in self._cluster._state.topics.items()}
        access = self._cluster._access
        return {
            TopicPartition(names[topic_id], partition): offset
            for (topic_id, partition), offset in record.offsets.items()
            if topic_id in names and access.is_allowed("DESCRIBE", TOPIC, names[topic_id])
        }

    def alter_offsets(self, changes: Mapping[str, OffsetChanges]) -> Mapping[GroupPartition, Result]:
        """See `Groups.alter_offsets`. In the log of requests, items have the form ``billing/orders-0``."""
        items = [(id_, where) for id_, group_changes in changes.items() for where in group_changes]
        with self._cluster._lock:
            return self._cluster._handle_change(
                "alter_offsets",
                items,
                lambda item: item,
                lambda item: f"{item[0]}/{item[1]}",
                lambda item: self._alter(*item, changes[item[0]][item[1]]),
                "",
            )

    def _alter(self, id_: str, where: TopicPartition, offset: CommittedOffset | None) -> None:
        self._require("READ" if offset is not None else "DELETE", id_)
        if not self._cluster._access.is_allowed("READ", TOPIC, where.topic):
            raise Fault(TOPIC_AUTHORIZATION_FAILED, f"offset of {where} in group {id_}")
        record = self._store.groups.get(id_)
        if offset is None and record is None:
            raise Fault(GROUP_ID_NOT_FOUND, f"group {id_}")
        if record is not None and record.members:
            if offset is not None:
                raise Fault(UNKNOWN_MEMBER_ID, f"offset of {where} in group {id_}")
            if where.topic in record.topics:
                raise Fault("GROUP_SUBSCRIBED_TO_TOPIC", f"offset of {where} in group {id_}")
        topic = self._cluster._state.topics.get(where.topic)
        if topic is None or not 0 <= where.partition < len(topic.partitions):
            raise Fault(_UNKNOWN_PARTITION, f"offset of {where} in group {id_}")
        key = (topic.topic_id, where.partition)
        if offset is None:
            assert record is not None
            record.offsets.pop(key, None)
        else:
            self._store.groups.setdefault(id_, GroupRecord()).offsets[key] = offset

    def delete_groups(self, ids: Sequence[str]) -> Mapping[str, Result]:
        """See `Groups.delete_groups`."""
        with self._cluster._lock:
            return self._cluster._handle_change(
                "delete_groups", list(dict.fromkeys(ids)), lambda id_: id_, str, self._delete, ""
            )

    def _delete(self, id_: str) -> None:
        self._require("DELETE", id_)
        record = self._store.groups.get(id_)
        if record is None:
            raise Fault(GROUP_ID_NOT_FOUND, f"group {id_}")
        if record.members:
            raise Fault(NON_EMPTY_GROUP, f"group {id_}")
        del self._store.groups[id_]
