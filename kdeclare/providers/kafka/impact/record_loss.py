"""Observe how many records a change to a topic deletes, and how many of them groups have not read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.deletable_records import (
    Bounds,
    LogLimits,
    PartitionLog,
    compute_deletable_bytes,
    compute_deletable_records,
    compute_probable_bytes,
    count_unread,
)
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.impact.topic_logs import (
    Readers,
    ReadingGroup,
    TopicLogs,
    explain_missing_leader,
)
from kdeclare.providers.kafka.impact.topic_settings import (
    CLEANUP_POLICY,
    LOSS_KEYS,
    REMOTE_STORAGE,
    RETENTION_BYTES,
    RETENTION_MS,
    TopicChange,
    TopicSettings,
    is_lower_limit,
    require_known,
)
from kdeclare.providers.kafka.live import Topic

_MAX_NAMED_GROUPS = 5
_DELETED = "which records are deleted"


@dataclass(frozen=True, slots=True)
class Loss:
    """A change that deletes records of a topic.

    path: the changed config; None if the whole topic is deleted.
    limits: the limits that cause the deletion. None if the topic is deleted or compacted, or if its remote
        records are deleted.
    is_tiered: whether the topic can also have records in remote storage, whose size is unknown.
    """

    resource: str
    topic: Topic
    path: str | None
    limits: LogLimits | None = None
    is_tiered: bool = False

    @property
    def is_compaction(self) -> bool:
        """Whether compaction deletes the records."""
        return self.limits is None and self.path == f"configs.{CLEANUP_POLICY}"


@dataclass(frozen=True, slots=True)
class UnknownLoss:
    """A change for which kdeclare cannot determine whether it deletes records.

    path: the changed config; None if the whole topic is deleted.
    """

    resource: str
    path: str | None
    reason: Fault | str


def find_losses(
    change: TopicChange, topic: Topic, settings: TopicSettings | Fault | None
) -> Iterator[Loss | UnknownLoss]:
    """Yield each way in which a change deletes records, or the reason why this cannot be determined."""
    resource = change.resource
    if change.is_deletion:
        may_be_tiered = not isinstance(settings, TopicSettings) or settings.is_tiered
        yield Loss(resource, topic, None, is_tiered=may_be_tiered)
        return
    changed_keys = [key for key in LOSS_KEYS if key in change.configs]
    unknown_keys = settings.unknown if isinstance(settings, TopicSettings) else ()
    doubtful_key = next((key for key in changed_keys if key in unknown_keys), changed_keys[0])
    known = require_known(settings, doubtful_key)
    if not isinstance(known, TopicSettings):
        yield UnknownLoss(resource, f"configs.{doubtful_key}", known)
        return
    limits_after = known.limits_after
    cause = _find_cause(known.limits_before, limits_after)
    if cause is not None:
        yield Loss(resource, topic, f"configs.{cause}", limits_after, known.is_tiered)
    if known.ends_tiering:
        yield Loss(resource, topic, f"configs.{REMOTE_STORAGE}", is_tiered=True)
    if known.is_compacted_after and not known.is_compacted_before:
        yield Loss(resource, topic, f"configs.{CLEANUP_POLICY}", is_tiered=known.is_tiered)


def merge_limits(losses: Iterable[Loss]) -> Mapping[str, LogLimits | None]:
    """Return, by topic, the limits that cause records to be deleted; None if there are only other causes."""
    limits: dict[str, LogLimits | None] = {}
    for loss in losses:
        limits[loss.topic.name] = loss.limits or limits.get(loss.topic.name)
    return limits


def _find_cause(before: LogLimits, after: LogLimits) -> str | None:
    """Return the config that makes Kafka delete more records; None if there is none."""
    if not after.deletes:
        return None
    if not before.deletes:
        return CLEANUP_POLICY
    if is_lower_limit(before.retention_ms, after.retention_ms):
        return RETENTION_MS
    return RETENTION_BYTES if is_lower_limit(before.retention_bytes, after.retention_bytes) else None


def build_unknown_loss(unknown: UnknownLoss) -> Observation:
    """Return the observation that kdeclare cannot determine whether a change deletes records."""
    return wording.build_unknown(unknown.resource, unknown.path, _DELETED, unknown.reason)


def observe_losses(reader: ImpactReader, losses: Sequence[Loss]) -> Iterator[Observation]:
    """Yield observations about deleted records, groups that have not read them, and clients of the topic."""
    readable: list[Loss] = []
    for loss in losses:
        reason = explain_missing_leader(loss.topic)
        if reason is None:
            readable.append(loss)
        else:
            yield build_unknown_loss(UnknownLoss(loss.resource, loss.path, reason))
    if not readable:
        return
    topics = {loss.topic.name: loss.topic for loss in readable}
    readers = reader.read_readers()
    logs = reader.read_logs(topics, merge_limits(readable), after_groups=True)
    deleted_topics = {loss.topic.name: loss.topic for loss in readable if loss.path is None}
    last_writes = reader.read_last_writes(deleted_topics)
    producers = reader.read_producers(deleted_topics)
    for loss in readable:
        name = loss.topic.name
        topic_logs = logs[name]
        if isinstance(topic_logs, Fault):
            yield build_unknown_loss(UnknownLoss(loss.resource, loss.path, topic_logs))
            continue
        if loss.path is None:
            yield from wording.build_writers(loss.resource, last_writes[name], producers[name])
        yield from _observe_loss(loss, topic_logs, readers)


def _observe_loss(loss: Loss, logs: TopicLogs, readers: Readers | Fault | str) -> Iterator[Observation]:
    logs = hide_tiered_sizes(loss, logs)
    deleted = {number: compute_deleted(loss, log) for number, log in logs.items()}
    records = sum_bounds(deleted.values())
    if loss.is_compaction:
        yield wording.build_compaction(loss.resource, loss.path)
    else:
        yield _build_loss(loss, logs, records)
    if not isinstance(readers, Readers):
        yield wording.build_unknown(loss.resource, loss.path, "which groups have unread records", readers)
    elif records.most or loss.path is None:
        yield from _observe_groups(loss, logs, deleted, readers)


def hide_tiered_sizes(loss: Loss, logs: TopicLogs) -> TopicLogs:
    """Return the logs without their sizes if a part of the topic can be in remote storage."""
    return {number: log.without_size() for number, log in logs.items()} if loss.is_tiered else logs


def compute_deleted(loss: Loss, log: PartitionLog) -> Bounds:
    """Return the number of records of a partition that are deleted."""
    if loss.limits is not None:
        records = compute_deletable_records(log, loss.limits)
        # Kafka copies segments to remote storage before it deletes them, but never the active segment.
        return Bounds(0, records.most) if loss.is_tiered else records
    return Bounds(log.count if loss.path is None else 0, log.count)


def _build_loss(loss: Loss, logs: TopicLogs, records: Bounds) -> Observation:
    total = sum(log.count for log in logs.values())
    size, about = compute_deleted_bytes(loss, logs)
    starts = sum(log.start for log in logs.values())
    limits = loss.limits
    is_by_time = limits is not None and limits.retention_bytes is None and not limits.is_compacted
    kept_times = [log.kept_since_ms for log in logs.values() if log.kept_since_ms is not None]
    kept_since_ms = min(kept_times, default=None) if is_by_time else None
    return wording.build_loss(
        loss.resource, loss.path, records, total, size, about, starts, kept_since_ms=kept_since_ms
    )


def compute_deleted_bytes(loss: Loss, logs: TopicLogs) -> tuple[Bounds | None, int | None]:
    """Return the bounds and the probable number of deleted bytes of a topic; None if a size is unknown."""
    if any(log.size is None for log in logs.values()):
        return None, None
    if loss.limits is None:
        about = sum(log.size or 0 for log in logs.values())
        return Bounds(about, about), about
    limits = loss.limits
    size = sum_bounds(compute_deletable_bytes(log, limits) or Bounds(0, 0) for log in logs.values())
    return size, sum(compute_probable_bytes(log, limits) or 0 for log in logs.values())


def _observe_groups(
    loss: Loss, logs: TopicLogs, deleted: Mapping[int, Bounds], readers: Readers
) -> Iterator[Observation]:
    """Yield observations about the groups that lose records, those with the most unread records first."""
    groups = readers.groups.get(loss.topic.name, ())
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
        yield wording.build_unknown_groups(loss.resource, loss.path, len(readers.unknown))


def _bound_unread(group: ReadingGroup, logs: TopicLogs, deleted: Mapping[int, Bounds]) -> Bounds:
    bounds = [
        Bounds(
            count_unread(log, deleted[number].least, group.committed.get(number)),
            count_unread(log, deleted[number].most, group.committed.get(number)),
        )
        for number, log in logs.items()
    ]
    return sum_bounds(bounds)


def sum_bounds(bounds: Iterable[Bounds]) -> Bounds:
    """Add numbers that are known only by their bounds, and return the bounds of the sum."""
    items = list(bounds)
    return Bounds(sum(item.least for item in items), sum(item.most for item in items))
