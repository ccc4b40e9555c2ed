"""Read the logs of topics, and the groups that read the topics, with few requests."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.consumer_group.group import GroupType
from kdeclare.providers.kafka.error_names import UNSUPPORTED_VERSION
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact.deletable_records import LogLimits, PartitionLog
from kdeclare.providers.kafka.impact.group_members import GroupMembers, read_group_members
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST, LogPosition

RECENT_MS = 3_600_000
"""The time in milliseconds within which a producer must have written to count as active."""

TopicLogs = Mapping[int, PartitionLog]
"""The logs of the partitions of a topic, by partition number."""

Found = TypeVar("Found")
Where = TypeVar("Where")
TOO_SLOW = Fault("TOO_SLOW", "reading the cluster took too long")
"""The Fault for data that kdeclare did not read because the time limit was reached."""
INCOMPLETE = Fault("INCOMPLETE_RESPONSE", "the brokers did not respond for every partition")
"""The Fault for a response that lacks a partition: a missing partition must not look like an empty one."""
_STABLE = "Stable"
"""The state of a group whose members have all of their assigned partitions."""


def explain_missing_leader(topic: Topic) -> str | None:
    """Return why the logs of a topic cannot be read, or None if all partitions have leaders.

    ListOffsets would wait until a partition without a leader gets one.
    """
    leaderless = [number for number, partition in enumerate(topic.partitions) if partition.leader is None]
    return f"partition {leaderless[0]} has no leader" if leaderless else None


def read_logs(
    cluster: Cluster,
    topics: Mapping[str, Topic],
    limits: Mapping[str, LogLimits | None],
    sizes: Mapping[TopicPartition, int],
    deadline: float,
) -> Mapping[str, TopicLogs | Fault]:
    """Return the logs of topics, or the reason why they cannot be read.

    topics: the topics, as they were read before. limits: the limits of each topic, which determine up to
        which offset records are too old. None means that this offset is not read.
    sizes: the known sizes of partitions. deadline: no request begins after this time (`time.monotonic`).
    """
    now_ms = int(time.time() * 1000)
    times = {name: _choose_times(topic_limits, now_ms) for name, topic_limits in limits.items()}
    return {
        name: positions
        if isinstance(positions, Fault)
        else {where.partition: _build_log(found, sizes.get(where)) for where, found in positions.items()}
        for name, positions in _list_positions(cluster, topics, times, deadline).items()
    }


def read_log_bounds(
    cluster: Cluster, topics: Mapping[str, Topic], deadline: float
) -> Mapping[str, Mapping[TopicPartition, tuple[int, ...]] | Fault]:
    """Return the start and the end of each log of topics, or the reason why they cannot be read.

    topics: the topics, as they were read before.
    deadline: no request begins after this time (`time.monotonic`).
    """
    bounds: dict[str, Mapping[TopicPartition, tuple[int, ...]] | Fault] = {}
    for name, positions in _list_positions(cluster, topics, dict.fromkeys(topics, ()), deadline).items():
        bounds[name] = (
            positions
            if isinstance(positions, Fault)
            else {where: tuple(item.offset for item in found) for where, found in positions.items()}
        )
    return bounds


_Positions = dict[TopicPartition, tuple[LogPosition, ...]]


def _list_positions(
    cluster: Cluster, topics: Mapping[str, Topic], times: Mapping[str, tuple[int, ...]], deadline: float
) -> Mapping[str, _Positions | Fault]:
    def read(asked_names: Sequence[str]) -> Mapping[str, _Positions]:
        by_topic: dict[str, _Positions] = {name: {} for name in asked_names}
        # The start is read first and the end last, so that no record between the requests is left out.
        all_times = {name: (EARLIEST, *times[name], LATEST) for name in asked_names}
        for where, positions in cluster.list_positions(all_times, known=topics).items():
            by_topic[where.topic][where] = positions
        return by_topic

    return _read_topics(list(times), read, deadline)


def read_before(deadline: float, read: Callable[[], Found]) -> Found | Fault:
    """Return the result of ``read``, or a Fault if it fails or if the deadline has already passed.

    deadline: a value of `time.monotonic`.
    """
    if time.monotonic() > deadline:
        return TOO_SLOW
    try:
        return read()
    except Fault as fault:
        return fault


def _read_topics(
    names: Sequence[str], read: Callable[[Sequence[str]], Mapping[str, Found]], deadline: float
) -> Mapping[str, Found | Fault]:
    """Read data about several topics in one request, or in as few requests as possible.

    If a request fails, try again with each half of its topics, until only the topics that cannot be read
    fail. This takes fewer requests than reading every topic separately.
    """
    if not names:
        return {}
    if time.monotonic() > deadline:
        return dict.fromkeys(names, TOO_SLOW)
    try:
        return read(names)
    except Fault as fault:
        if len(names) == 1 or fault.error == UNSUPPORTED_VERSION:
            return dict.fromkeys(names, fault)
    middle = len(names) // 2
    first_half = _read_topics(names[:middle], read, deadline)
    return {**first_half, **_read_topics(names[middle:], read, deadline)}


def _build_log(positions: tuple[LogPosition, ...], size: int | None) -> PartitionLog:
    start, *at_times, end = positions
    if not at_times:
        return PartitionLog(start.offset, end.offset, size)
    first_near, first_within = at_times
    kept_since_ms = first_within.timestamp_ms if first_within.timestamp_ms >= 0 else None
    return PartitionLog(start.offset, end.offset, size, first_within.offset, first_near.offset, kept_since_ms)


def _choose_times(limits: LogLimits | None, now_ms: int) -> tuple[int, ...]:
    if limits is None or not limits.deletes or limits.retention_ms is None:
        return ()
    oldest_kept = max(0, now_ms - limits.retention_ms)
    return max(0, oldest_kept - 2 * limits.segment_ms), oldest_kept


def read_sizes(cluster: Cluster, topics: Mapping[str, Topic]) -> Mapping[TopicPartition, int]:
    """Return the size of each partition on its leader, in bytes. Raises Fault."""
    dirs_by_broker = cluster.log_dirs(sorted(topics), known=topics)
    return {
        where: size
        for broker, dirs in dirs_by_broker.items()
        for log_dir in dirs
        for where, size in log_dir.sizes.items()
        if where.topic in topics and _find_leader(topics[where.topic], where.partition) == broker
    }


def _find_leader(topic: Topic, partition: int) -> int | None:
    return topic.partitions[partition].leader if partition < len(topic.partitions) else None


@dataclass(frozen=True, slots=True)
class ReadingGroup:
    """A group that reads a topic.

    committed: the offset that the group reads next, by partition. members: the number of members that have
    a partition of the topic. state: Kafka's name for the state of the group. is_simple: see `ListedGroup`.
    """

    id: str
    committed: Mapping[int, int]
    members: int = 0
    state: str = ""
    is_simple: bool = False


@dataclass(frozen=True, slots=True)
class Readers:
    """The groups of a cluster.

    groups: the groups that read a topic, by topic. is_complete: whether the principal is known to see all
        groups.
    unknown: the groups whose topics kdeclare does not know: share groups, Kafka Streams groups with members,
        groups of an unknown type, and groups that are rebalancing or whose members have no assigned
        partitions.
    """

    groups: Mapping[str, Sequence[ReadingGroup]]
    is_complete: bool
    unknown: tuple[str, ...] = ()


def require_every_partition(
    found: Mapping[str, Mapping[Where, Found] | Fault], topics: Mapping[str, Topic]
) -> Mapping[str, Mapping[Where, Found] | Fault]:
    """Replace the result for a topic with a Fault unless the result covers all partitions of the topic."""
    return {
        name: INCOMPLETE
        if not isinstance(values, Fault) and len(values) < len(topics[name].partitions)
        else values
        for name, values in found.items()
    }


def read_readers(cluster: Cluster, found_members: GroupMembers | None = None) -> Readers:
    """Read the topics and committed offsets of all groups.

    Raises Fault, and UnknownGroupsError. A group without committed offsets is included if its members have
    partitions of a topic. Share groups store their positions elsewhere, and are not included.
    found_members: the groups, if they were already read.
    """
    all_members = found_members or read_group_members(cluster)
    listed = {
        id_: group
        for id_, group in all_members.listed.items()
        if group.has_consumer_offsets or group.type is GroupType.STREAMS
    }
    unknown = {
        id_ for id_, group in all_members.listed.items() if group.type in (GroupType.SHARE, GroupType.UNKNOWN)
    }
    active_ids = {id_ for id_, group in listed.items() if group.is_active}
    described = all_members.described
    offsets = cluster.groups.fetch_offsets(sorted(listed)) if listed else {}
    groups: dict[str, list[ReadingGroup]] = {}
    for id_ in sorted(listed):
        members_of: dict[str, int] = {}
        group = described.get(id_)
        members = group.members if group is not None else None
        has_partitions = any(member.partitions for member in members or ())
        is_waiting = not has_partitions or (group is not None and group.group.state != _STABLE)
        if id_ in active_ids and is_waiting:
            unknown.add(id_)
        for member in members or ():
            for topic in {where.topic for where in member.partitions}:
                members_of[topic] = members_of.get(topic, 0) + 1
        committed_of: dict[str, dict[int, int]] = {}
        for where, committed in offsets.get(id_, {}).items():
            committed_of.setdefault(where.topic, {})[where.partition] = committed.offset
        state = (listed[id_] if group is None else group.group).state
        for topic in members_of.keys() | committed_of.keys():
            committed_offsets = committed_of.get(topic, {})
            found = ReadingGroup(
                id_, committed_offsets, members_of.get(topic, 0), state, listed[id_].is_simple
            )
            groups.setdefault(topic, []).append(found)
    return Readers(groups, all_members.is_complete, tuple(sorted(unknown)))


def read_producers(
    cluster: Cluster, topics: Mapping[str, Topic], deadline: float
) -> Mapping[str, int | Fault]:
    """Read the number of active producers of each topic.

    A producer is active if it has an open transaction, or wrote a record with a timestamp within the last
    hour.
    deadline: no request begins after this time (`time.monotonic`).
    """
    since_ms = int(time.time() * 1000) - RECENT_MS

    def count(asked_names: Sequence[str]) -> Mapping[str, int | Fault]:
        recent_ids: dict[str, set[int]] = {name: set() for name in asked_names}
        refused: dict[str, Fault] = {}
        answered: Counter[str] = Counter()
        for where, producers in cluster.list_producers(asked_names, known=topics).items():
            answered[where.topic] += 1
            if isinstance(producers, Fault):
                refused[where.topic] = producers
                continue
            recent_ids[where.topic] |= {
                each.id for each in producers if each.in_transaction or each.last_written_ms >= since_ms
            }
        incomplete = {
            name: INCOMPLETE for name in asked_names if answered[name] < len(topics[name].partitions)
        }
        return {
            name: refused.get(name) or incomplete.get(name) or len(ids) for name, ids in recent_ids.items()
        }

    return _read_topics(list(topics), count, deadline)


def read_last_writes(
    cluster: Cluster, topics: Mapping[str, Topic], deadline: float
) -> Mapping[str, int | Fault | None]:
    """Read the latest timestamp of each topic, in milliseconds since 1970; None if it has no records.

    A Fault means that the timestamp could not be read. Brokers before Kafka 3.0 do not report it.
    deadline: no request begins after this time (`time.monotonic`).
    """
    found = require_every_partition(read_partition_writes(cluster, list(topics), deadline), topics)
    return {
        name: times if isinstance(times, Fault) else find_latest(times.values())
        for name, times in found.items()
    }


def find_latest(times_ms: Iterable[int | None]) -> int | None:
    """Return the latest of the times that are known; None if none is known."""
    return max((at for at in times_ms if at is not None), default=None)


def read_partition_writes(
    cluster: Cluster, names: Sequence[str], deadline: float
) -> Mapping[str, Mapping[int, int | None] | Fault]:
    """Read the latest timestamp in each partition, as `read_last_writes` does for topics."""

    def read(asked_names: Sequence[str]) -> Mapping[str, Mapping[int, int | None]]:
        by_topic: dict[str, dict[int, int | None]] = {name: {} for name in asked_names}
        for where, at in cluster.find_last_writes(asked_names).items():
            by_topic[where.topic][where.partition] = at
        return by_topic

    return _read_topics(names, read, deadline)
