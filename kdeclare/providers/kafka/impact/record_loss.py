"""Observe which records a change of a topic deletes, and which of them groups have not read."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.changes import Action, Change
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.deletable_records import (
    Bounds,
    LogLimits,
    compute_deletable_bytes,
    compute_deletable_records,
    compute_probable_bytes,
    count_unread,
)
from kdeclare.providers.kafka.impact.topic_logs import (
    MAX_GROUPS,
    Readers,
    ReadingGroup,
    TooManyGroupsError,
    TopicLogs,
    read_logs,
    read_readers,
    read_writers,
)
from kdeclare.providers.kafka.impact.topic_settings import (
    CLEANUP_POLICY,
    RETENTION_BYTES,
    RETENTION_MS,
    TopicSettings,
    find_config_field,
)
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster

LOSS_KEYS = (CLEANUP_POLICY, RETENTION_MS, RETENTION_BYTES)
"""The configs of a topic whose changes can delete records."""

_MAX_NAMED_GROUPS = 5
_TIME_LIMIT_S = 10.0
"""After this time, kdeclare sends no further requests about the impact of a plan, in seconds."""
_DELETED = "which records are deleted"


@dataclass(frozen=True, slots=True)
class Loss:
    """A change that deletes records of a topic.

    path: the changed config; None if the whole topic is deleted.
    limits: the limits that delete the records. None if the topic is deleted or compacted.
    is_tiered: whether the topic also has records in remote storage, whose size is unknown.
    """

    resource: str
    topic: Topic
    path: str | None
    limits: LogLimits | None = None
    is_tiered: bool = False

    @property
    def is_compaction(self) -> bool:
        """Whether compaction deletes the records."""
        return self.limits is None and self.path is not None


def can_lose_records(change: Change) -> bool:
    """Return whether the change can delete records, as far as its fields tell."""
    return change.action is Action.DELETE or any(find_config_field(change, key) for key in LOSS_KEYS)


def find_losses(
    change: Change, topic: Topic, settings: TopicSettings | Fault | None
) -> Iterator[Loss | Observation]:
    """Yield what the change deletes, or an observation about what cannot be determined."""
    resource = str(change.id)
    if change.action is Action.DELETE:
        yield Loss(resource, topic, None)
        return
    changed_keys = [key for key in LOSS_KEYS if find_config_field(change, key)]
    path = f"configs.{changed_keys[0]}"
    if not isinstance(settings, TopicSettings):
        yield wording.build_unknown(resource, path, _DELETED, settings or "the topic is gone")
        return
    unknown_keys = [key for key in changed_keys if key in settings.unknown]
    if unknown_keys:
        reason = f"the brokers do not show their default of {unknown_keys[0]} (permission DescribeConfigs)"
        yield wording.build_unknown(resource, f"configs.{unknown_keys[0]}", _DELETED, reason)
        return
    cause = _find_cause(settings.limits_before, settings.limits_after)
    if cause is not None:
        limits = settings.limits_after
        yield Loss(resource, topic, f"configs.{cause}", limits, settings.is_tiered)
    if settings.is_compacted_after and not settings.is_compacted_before:
        yield Loss(resource, topic, f"configs.{CLEANUP_POLICY}")


def _find_cause(before: LogLimits, after: LogLimits) -> str | None:
    """Return the config that makes Kafka delete more records; None if there is none."""
    if not after.deletes:
        return None
    if not before.deletes:
        return CLEANUP_POLICY
    if _is_lower(before.retention_ms, after.retention_ms):
        return RETENTION_MS
    return RETENTION_BYTES if _is_lower(before.retention_bytes, after.retention_bytes) else None


def _is_lower(before: int | None, after: int | None) -> bool:
    return after is not None and (before is None or after < before)


def observe_losses(cluster: Cluster, losses: Sequence[Loss]) -> Iterator[Observation]:
    """Yield which records are deleted, who has not read them, and who uses a topic that is deleted."""
    readable: list[Loss] = []
    for loss in losses:
        leaderless = [n for n, partition in enumerate(loss.topic.partitions) if partition.leader is None]
        if leaderless:  # ListOffsets would wait for a leader
            reason = f"partition {leaderless[0]} has no leader"
            yield wording.build_unknown(loss.resource, loss.path, _DELETED, reason)
        else:
            readable.append(loss)
    if not readable:
        return
    deadline = time.monotonic() + _TIME_LIMIT_S
    topics = {loss.topic.name: loss.topic for loss in readable}
    # The groups are read before the logs: what they read in between counts as unread, which is the safe side.
    readers = _read_readers(cluster, topics)
    limits: dict[str, LogLimits | None] = {}
    for loss in readable:
        limits[loss.topic.name] = loss.limits or limits.get(loss.topic.name)
    logs = read_logs(cluster, topics, limits, deadline)
    deleted_topics = [loss.topic.name for loss in readable if loss.path is None]
    writers = read_writers(cluster, deleted_topics, deadline) if deleted_topics else {}
    for loss in readable:
        topic_logs = logs[loss.topic.name]
        if isinstance(topic_logs, Fault):
            yield wording.build_unknown(loss.resource, loss.path, _DELETED, topic_logs)
            continue
        if loss.path is None:
            yield from wording.build_writers(loss.resource, writers[loss.topic.name])
        yield from _observe_loss(loss, topic_logs, readers)


def _read_readers(cluster: Cluster, topics: Iterable[str]) -> Readers | Fault | str:
    try:
        return read_readers(cluster, tuple(topics))
    except Fault as fault:
        return fault
    except TooManyGroupsError:
        return f"the cluster has more than {MAX_GROUPS:,} groups"


def _observe_loss(loss: Loss, logs: TopicLogs, readers: Readers | Fault | str) -> Iterator[Observation]:
    if loss.is_tiered:
        logs = {number: log.without_size() for number, log in logs.items()}
    deleted = {number: _bound_deleted(loss, number, logs) for number in logs}
    records = _sum_bounds(deleted.values())
    if loss.is_compaction:
        yield wording.build_compaction(loss.resource, loss.path)
    else:
        yield _build_loss(loss, logs, records)
    if not isinstance(readers, Readers):
        yield wording.build_unknown(loss.resource, loss.path, "which groups have unread records", readers)
    elif records.most or loss.path is None:
        yield from _observe_groups(loss, logs, deleted, readers)


def _bound_deleted(loss: Loss, number: int, logs: TopicLogs) -> Bounds:
    if loss.limits is not None:
        return compute_deletable_records(logs[number], loss.limits)
    return Bounds(0 if loss.is_compaction else logs[number].count, logs[number].count)


def _build_loss(loss: Loss, logs: TopicLogs, records: Bounds) -> Observation:
    total = sum(log.count for log in logs.values())
    size: Bounds | None = None
    about: int | None = None
    if all(log.size is not None for log in logs.values()):
        if loss.limits is None:
            about = sum(log.size or 0 for log in logs.values())
            size = Bounds(about, about)
        else:
            limits = loss.limits
            size = _sum_bounds(compute_deletable_bytes(log, limits) or Bounds(0, 0) for log in logs.values())
            about = sum(compute_probable_bytes(log, limits) or 0 for log in logs.values())
    return wording.build_loss(loss.resource, loss.path, records, total, size, about)


def _observe_groups(
    loss: Loss, logs: TopicLogs, deleted: Mapping[int, Bounds], readers: Readers
) -> Iterator[Observation]:
    """Yield the groups that lose records, those with most unread records first."""
    groups = readers.groups[loss.topic.name]
    unread = {group.id: _bound_unread(group, logs, deleted) for group in groups}
    ranked = sorted(groups, key=lambda group: (-unread[group.id].most, group.id))
    affected = [g for g in ranked if unread[g.id].most or (loss.path is None and g.members)]
    for group in affected[:_MAX_NAMED_GROUPS]:
        yield wording.build_unread(loss.resource, loss.path, group.id, unread[group.id], group.members)
    others = [unread[group.id].most for group in affected[_MAX_NAMED_GROUPS:]]
    if others:
        yield wording.build_other_groups(loss.resource, loss.path, others)
    if not affected:
        is_complete = readers.is_complete and not readers.unknown
        yield wording.build_readers(loss.resource, loss.path, len(groups), is_complete=is_complete)
    if not readers.is_complete:
        yield wording.build_hidden_groups(loss.resource, loss.path)
    if readers.unknown:
        yield wording.build_unknown_groups(loss.resource, loss.path, readers.unknown)


def _bound_unread(group: ReadingGroup, logs: TopicLogs, deleted: Mapping[int, Bounds]) -> Bounds:
    bounds = [
        Bounds(
            count_unread(log, deleted[number].least, group.committed.get(number)),
            count_unread(log, deleted[number].most, group.committed.get(number)),
        )
        for number, log in logs.items()
    ]
    return _sum_bounds(bounds)


def _sum_bounds(bounds: Iterable[Bounds]) -> Bounds:
    items = list(bounds)
    return Bounds(sum(item.least for item in items), sum(item.most for item in items))
