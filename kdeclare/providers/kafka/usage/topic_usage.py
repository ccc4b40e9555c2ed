"""Read who writes to topics and who reads them, for up to 1000 topics at a time."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.progress import Progress
from kdeclare.core.units import format_count, format_names
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.impact.deletable_records import count_unread
from kdeclare.providers.kafka.impact.group_members import UnknownGroupsError
from kdeclare.providers.kafka.impact.topic_logs import (
    Readers,
    ReadingGroup,
    TopicLogs,
    explain_missing_leader,
    find_latest,
    read_logs,
    read_partition_writes,
    read_producers,
    read_readers,
    read_sizes,
    require_every_partition,
)
from kdeclare.providers.kafka.impact.topic_settings import REMOTE_STORAGE
from kdeclare.providers.kafka.impact.wording import READ, format_reason
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.usage.topic_purpose import TopicPurpose, find_purpose

TOPICS_PER_STEP = 1000
"""The maximum number of topics that are read together. Each request covers several of them."""

_STEP_LIMIT_S = 60.0
"""The time limit for reading the logs of `TOPICS_PER_STEP` topics, in seconds. No request starts later."""
_NO_SIZE = "a broker did not report the size of a partition"
_TIERED = "the topic has tiered storage, and brokers report only the size of the local log"
_GONE = "deleted in the meantime"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that could not be determined. reason: why, as a clause without a period."""

    reason: str


def get_known(value: int | Unknown | None) -> int | None:
    """Return the value; None if it is unknown."""
    return None if isinstance(value, Unknown) else value


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """A group that reads a topic.

    members: the number of members that have partitions of the topic; None if the group has members, but none
        of them has partitions at the moment.
    unread: the number of records of the topic that the group has not read; None if unknown.
    """

    id: str
    state: str
    members: int | None
    unread: int | None


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """The producers and readers of one topic.

    records: the number of offsets, which is an upper bound for the number of records.
    size: the bytes of the logs of the leaders.
    newest_ms: the latest timestamp of the records, in milliseconds since 1970; None if there are no records.
    last_write_ms: the latest timestamp of all records, including records that have been deleted since then.
        None if no record was ever written.
    producers: the number of producers that wrote within the last hour or have an open transaction.
    groups: groups with members first, then the groups with the most unread records.
    """

    name: str
    partitions: int
    purpose: TopicPurpose | None
    records: int | Unknown
    size: int | Unknown
    newest_ms: int | Unknown | None
    last_write_ms: int | Unknown | None
    producers: int | Unknown
    groups: tuple[GroupUsage, ...] | Unknown

    def check_unused(self, since_ms: int) -> bool | Unknown:
        """Return whether the topic has been unused since ``since_ms``.

        A topic is unused if no group with members reads it, and no client has written to it since that time.

        Producers without idempotence are known only from their records. Without the permission to see
        producers, only the timestamps of the records are considered. The result is Unknown if the groups or
        the time of the last write cannot be determined, if a group is rebalancing, or if the name of the
        topic suggests that another system uses it.
        """
        groups = () if isinstance(self.groups, Unknown) else self.groups
        has_producers = not isinstance(self.producers, Unknown) and self.producers > 0
        if has_producers or any(group.members for group in groups):
            return False
        if isinstance(self.newest_ms, int) and self.newest_ms >= since_ms:
            return False
        if isinstance(self.groups, Unknown):
            return self.groups
        if isinstance(self.last_write_ms, Unknown):
            return self.last_write_ms
        rebalancing = next((group.id for group in groups if group.members is None), None)
        if rebalancing is not None:
            return Unknown(f"the members of group '{rebalancing}' have no partitions at the moment")
        if self.purpose is not None:
            system = self.purpose.label
            return Unknown(
                f"the name suggests that {system} uses the topic, and {system} can read it without a group"
            )
        return True


@dataclass(frozen=True, slots=True)
class ClusterUsage:
    """The producers and readers of the topics of a cluster.

    all_groups_visible: whether the principal is known to see all groups.
    unknown_groups: the groups whose topics kdeclare does not know, see `Readers.unknown`.
    unknown_storage: the topics that may or may not use tiered storage, by the reason why this is unknown.
    """

    topics: tuple[TopicUsage, ...]
    all_groups_visible: bool = True
    unknown_groups: tuple[str, ...] = ()
    unknown_storage: Mapping[str, Sequence[str]] = field(default_factory=dict)


def explain_unknown_groups(usage: ClusterUsage) -> str:
    """Return a clause that names the groups whose topics kdeclare does not know.

    There must be at least one such group.
    """
    verb = "reads" if len(usage.unknown_groups) == 1 else "read"
    groups = format_count(len(usage.unknown_groups), "group")
    return f"kdeclare does not know which topics {groups} {verb} ({format_names(usage.unknown_groups)})"


def read_usage(cluster: Cluster, topics: Mapping[str, Topic], progress: Progress) -> ClusterUsage:
    """Read who writes to the topics and who reads them. Raises Fault.

    A value that cannot be read is `Unknown`.

    The groups are read before the logs. Records that the groups read in the meantime count as unread, which
    errs on the safe side.
    """
    progress("Reading the groups", 0, 0)
    readers = _read_readers(cluster)
    names = list(topics)
    usages: list[TopicUsage] = []
    unknown_storage: dict[str, list[str]] = {}
    for first in range(0, len(names), TOPICS_PER_STEP):
        progress("Reading the topics", first, len(names))
        step = {name: topics[name] for name in names[first : first + TOPICS_PER_STEP]}
        storages = _read_storages(cluster, step)
        for name, storage in storages.items():
            if isinstance(storage, Unknown):
                unknown_storage.setdefault(storage.reason, []).append(name)
        tiered = {name for name, storage in storages.items() if storage is True}
        usages += _read_step(cluster, step, tiered, readers)
    progress("Reading the topics", len(names), len(names))
    if isinstance(readers, Unknown):
        return ClusterUsage(tuple(usages), unknown_storage=unknown_storage)
    return ClusterUsage(tuple(usages), readers.is_complete, readers.unknown, unknown_storage)


def _read_readers(cluster: Cluster) -> Readers | Unknown:
    try:
        return read_readers(cluster)
    except Fault as fault:
        return Unknown(format_reason(fault))
    except UnknownGroupsError as error:
        return Unknown(str(error))


def _read_storages(cluster: Cluster, topics: Collection[str]) -> Mapping[str, bool | Unknown]:
    """Return whether each topic uses tiered storage (KIP-405)."""
    queries = [
        ConfigQuery(ConfigResource(ConfigScope.TOPIC, name), frozenset({REMOTE_STORAGE})) for name in topics
    ]
    storages: dict[str, bool | Unknown] = {}
    for resource, entries in cluster.describe_configs_partially(queries).items():
        if isinstance(entries, Fault):
            storages[resource.name] = Unknown(format_reason(entries, right="DescribeConfigs"))
        else:
            entry = entries.get(REMOTE_STORAGE)
            storages[resource.name] = entry is not None and entry.value == "true"
    return storages


@dataclass(frozen=True, slots=True)
class _Writes:
    """The producers of topics, and the times of the latest writes.

    See `read_partition_writes` and `read_producers`.
    """

    times: Mapping[str, Mapping[int, int | None] | Fault]
    producers: Mapping[str, int | Fault]


def _read_step(
    cluster: Cluster, topics: Mapping[str, Topic], tiered: Collection[str], readers: Readers | Unknown
) -> Iterator[TopicUsage]:
    deadline = time.monotonic() + _STEP_LIMIT_S
    reasons = {name: explain_missing_leader(topic) for name, topic in topics.items()}
    led = {name: topic for name, topic in topics.items() if reasons[name] is None}
    sizes = _read_sizes(cluster, led)
    known_sizes = {} if isinstance(sizes, Unknown) else sizes
    logs = read_logs(cluster, led, dict.fromkeys(led), known_sizes, deadline)
    writes = _Writes(
        require_every_partition(read_partition_writes(cluster, list(led), deadline), led),
        read_producers(cluster, led, deadline),
    )
    no_size = sizes if isinstance(sizes, Unknown) else Unknown(_NO_SIZE)
    for name, topic in topics.items():
        reason, missing_size = reasons[name], Unknown(_TIERED) if name in tiered else no_size
        topic_logs = Unknown(reason) if reason else _check_logs(topic, logs[name])
        if name in tiered and not isinstance(topic_logs, Unknown):
            topic_logs = {number: log.without_size() for number, log in topic_logs.items()}
        yield _build_usage(topic, topic_logs, writes, readers, missing_size)


def _read_sizes(cluster: Cluster, topics: Mapping[str, Topic]) -> Mapping[TopicPartition, int] | Unknown:
    if not topics:
        return {}
    try:
        return read_sizes(cluster, topics)
    except Fault as fault:
        return Unknown(format_reason(fault))


def _check_logs(topic: Topic, logs: TopicLogs | Fault) -> TopicLogs | Unknown:
    if isinstance(logs, Fault):
        return Unknown(format_reason(logs))
    return logs if len(logs) >= len(topic.partitions) else Unknown(_GONE)


def _build_usage(
    topic: Topic, logs: TopicLogs | Unknown, writes: _Writes, readers: Readers | Unknown, no_size: Unknown
) -> TopicUsage:
    """Return the usage of a topic. no_size: the size to return if brokers did not report all sizes."""
    records: int | Unknown
    size: int | Unknown
    newest: int | Unknown | None
    last_write: int | Unknown | None
    producers: int | Unknown
    if isinstance(logs, Unknown):
        records = size = newest = last_write = producers = logs
    else:
        times, found = writes.times[topic.name], writes.producers[topic.name]
        records = sum(log.count for log in logs.values())
        size = _sum_sizes(logs, no_size)
        newest = _find_newest(logs, times)
        last_write = _find_last_write(logs, times, newest)
        producers = Unknown(format_reason(found, right=READ)) if isinstance(found, Fault) else found
    groups = readers if isinstance(readers, Unknown) else _build_groups(topic.name, logs, readers)
    return TopicUsage(
        topic.name,
        len(topic.partitions),
        find_purpose(topic),
        records,
        size,
        newest,
        last_write,
        producers,
        groups,
    )


def _sum_sizes(logs: TopicLogs, no_size: Unknown) -> int | Unknown:
    sizes = [log.size for log in logs.values() if log.size is not None]
    return sum(sizes) if len(sizes) == len(logs) else no_size


def _find_newest(logs: TopicLogs, times: Mapping[int, int | None] | Fault) -> int | Unknown | None:
    if not any(log.count for log in logs.values()):
        return None
    if isinstance(times, Fault):
        return Unknown(format_reason(times))
    latest_ms = find_latest(times.values())
    return Unknown("brokers report no timestamp of its records") if latest_ms is None else latest_ms


def _find_last_write(
    logs: TopicLogs, times: Mapping[int, int | None] | Fault, newest: int | Unknown | None
) -> int | Unknown | None:
    """Return the time of the last write; None if no partition ever had a record.

    If all records of a partition were deleted, return `Unknown`, because brokers do not know when the records
    were written.
    """
    if isinstance(newest, Unknown):
        return newest
    known_times = {} if isinstance(times, Fault) else times
    for number, log in sorted(logs.items()):
        if log.end and (not log.count or known_times.get(number) is None):
            return Unknown(f"all records of partition {number} were deleted")
    return newest


def _build_groups(topic: str, logs: TopicLogs | Unknown, readers: Readers) -> tuple[GroupUsage, ...]:
    groups = [
        GroupUsage(
            group.id,
            group.state,
            None if group.id in readers.unknown else group.members,
            None if isinstance(logs, Unknown) else _count_all_unread(group, logs),
        )
        for group in readers.groups.get(topic, ())
    ]
    return tuple(sorted(groups, key=lambda group: (-(group.members or 0), -(group.unread or 0), group.id)))


def _count_all_unread(group: ReadingGroup, logs: TopicLogs) -> int:
    return sum(count_unread(log, log.count, group.committed.get(number)) for number, log in logs.items())
