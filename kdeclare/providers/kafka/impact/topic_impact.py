"""Observe what the changes of a plan mean for the records and consumers of topics."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.changes import Action, Change, FieldChange, Risk
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.deletable_records import (
    Bounds,
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
    MIN_ISR,
    RETENTION_BYTES,
    RETENTION_MS,
    TopicSettings,
    read_settings,
)
from kdeclare.providers.kafka.live import KafkaState, Topic
from kdeclare.providers.kafka.port import Cluster

_KIND = "Topic"
_LOSS_PATHS = tuple(f"configs.{key}" for key in (CLEANUP_POLICY, RETENTION_MS, RETENTION_BYTES))
_SEVERE = (Risk.DESTRUCTIVE, Risk.IRREVERSIBLE)
_MIN_ISR_PATH, _CLEANUP_PATH = f"configs.{MIN_ISR}", f"configs.{CLEANUP_POLICY}"
_FACTOR, _ASSIGNMENTS = "replicationFactor", "assignments."
_MAX_NAMED_GROUPS = 5
_TIME_LIMIT_S = 10.0
"""How long kdeclare reads the impact of a plan before it leaves out the rest, in seconds."""
_STREAMS_SUFFIXES = ("-changelog", "-repartition")
"""The suffixes of the internal topics of Kafka Streams (org.apache.kafka.streams.processor.internals)."""


@dataclass(frozen=True, slots=True)
class _Loss:
    """A change that deletes records. path: the changed config; None if the whole topic is deleted."""

    change: Change
    topic: Topic
    path: str | None

    @property
    def resource(self) -> str:
        return str(self.change.id)


def observe_topics(cluster: Cluster, live: KafkaState, changes: Sequence[Change]) -> Iterator[Observation]:
    """Yield what the changes of topics mean. What cannot be read becomes an observation, too.

    Nothing is read unless a change deletes records or affects a setting on which the impact depends.
    """
    existing = {
        change.id.name: change
        for change in changes
        if change.id.kind == _KIND and change.action is not Action.CREATE and change.id.name in live.topics
    }
    losses = [
        _Loss(change, live.topics[name], path)
        for name, change in existing.items()
        for path in _find_loss_paths(change)
    ]
    growing = {name: c for name, c in existing.items() if _find_field(c, "partitions") and _is_update(c)}
    resized = {name: c for name, c in existing.items() if _is_update(c) and _changes_writability(c)}
    compacted = {name: c for name, c in existing.items() if _is_update(c) and _find_field(c, _CLEANUP_PATH)}
    needs_settings = {name: existing[name] for name in (*growing, *resized, *compacted)}
    needs_settings |= {loss.topic.name: loss.change for loss in losses if loss.path is not None}
    settings: Mapping[str, TopicSettings | Fault] = {}
    if needs_settings:
        broker_id = next(iter(sorted(live.cluster.serving_broker_ids)), None)
        try:
            settings = read_settings(cluster, needs_settings, broker_id)
        except Fault as fault:
            settings = dict.fromkeys(needs_settings, fault)
    yield from _observe_losses(cluster, live, losses, settings)
    for name, change in growing.items():
        yield from _observe_growth(change, live.topics[name], settings.get(name))
    for name, change in resized.items():
        yield from _observe_writability(change, live.topics[name], settings.get(name))
    for change in compacted.values():
        yield from _observe_compaction(change, settings.get(change.id.name))


def _find_loss_paths(change: Change) -> tuple[str | None, ...]:
    """Return the changed field that deletes records, or None for the deletion of the topic.

    Several limits of a topic act together, so that only one of them is named.
    """
    if change.action is Action.DELETE:
        return (None,)
    paths = [f.path for f in change.fields if f.path in _LOSS_PATHS and f.risk in _SEVERE]
    return tuple(paths[:1])


def _find_field(change: Change, path: str) -> FieldChange | None:
    return next((field for field in change.fields if field.path == path), None)


def _changes_writability(change: Change) -> bool:
    return any(
        field.path in (_MIN_ISR_PATH, _FACTOR) or field.path.startswith(_ASSIGNMENTS)
        for field in change.fields
    )


def _is_update(change: Change) -> bool:
    return change.action is Action.UPDATE


def _observe_losses(
    cluster: Cluster, live: KafkaState, losses: Sequence[_Loss], settings: Mapping[str, TopicSettings | Fault]
) -> Iterator[Observation]:
    readable: list[_Loss] = []
    for loss in losses:
        described = settings.get(loss.topic.name)
        if loss.path is not None and not isinstance(described, TopicSettings):
            reason = described if described is not None else "the topic is gone"
            yield wording.build_unknown(loss.resource, loss.path, "which records are deleted", reason)
        elif loss.path != _CLEANUP_PATH or _adds_deletion(described):
            readable.append(loss)
    if not readable:
        return
    deadline = time.monotonic() + _TIME_LIMIT_S
    topics = {loss.topic.name: loss.topic for loss in readable}
    # The groups are read before the logs: what they read in between counts as unread, which is the safe side.
    readers = _read_readers(cluster, topics)
    if time.monotonic() > deadline:
        reason = f"reading the groups took more than {_TIME_LIMIT_S:.0f} s"
        yield from _report_unknown(readable, "which records are deleted", reason)
        return
    limits = {
        loss.topic.name: found.limits_after
        if loss.path is not None and isinstance(found := settings[loss.topic.name], TopicSettings)
        else None
        for loss in readable
    }
    deleted_topics = [loss.topic.name for loss in readable if loss.path is None]
    try:
        logs = read_logs(cluster, topics, limits)
        writers = read_writers(cluster, deleted_topics) if deleted_topics else {}
    except Fault as fault:
        yield from _report_unknown(readable, "which records are deleted", fault)
        return
    for loss in readable:
        if loss.path is None:
            yield from wording.build_writers(loss.resource, writers[loss.topic.name])
        yield from _observe_loss(loss, logs[loss.topic.name], settings.get(loss.topic.name), readers)


def _adds_deletion(settings: TopicSettings | Fault | None) -> bool:
    """Return whether a change lets Kafka delete old records of a topic that was only compacted."""
    if not isinstance(settings, TopicSettings):
        return False
    return settings.limits_after.deletes and not settings.limits_before.deletes


def _read_readers(cluster: Cluster, topics: Iterable[str]) -> Readers | Fault | str:
    try:
        return read_readers(cluster, tuple(topics))
    except Fault as fault:
        return fault
    except TooManyGroupsError:
        return f"the cluster has more than {MAX_GROUPS:,} groups"


def _report_unknown(losses: Iterable[_Loss], what: str, reason: Fault | str) -> Iterator[Observation]:
    for loss in losses:
        yield wording.build_unknown(loss.resource, loss.path, what, reason)


def _observe_loss(
    loss: _Loss, logs: TopicLogs, settings: TopicSettings | Fault | None, readers: Readers | Fault | str
) -> Iterator[Observation]:
    limits = settings.limits_after if isinstance(settings, TopicSettings) and loss.path else None
    total = sum(log.count for log in logs.values())
    deleted: dict[int, Bounds] = {}
    for number, log in logs.items():
        deleted[number] = compute_deletable_records(log, limits) if limits else Bounds(log.count, log.count)
    records = _sum_bounds(deleted.values())
    if limits is None:
        known = [log.size for log in logs.values() if log.size is not None]
        about = sum(known) if len(known) == len(logs) else None
        size = None if about is None else Bounds(about, about)
    else:
        sizes = [compute_deletable_bytes(log, limits) for log in logs.values()]
        estimates = [compute_probable_bytes(log, limits) for log in logs.values()]
        size = None if None in sizes else _sum_bounds(each for each in sizes if each is not None)
        about = None if None in estimates else sum(each for each in estimates if each is not None)
    yield wording.build_loss(loss.resource, loss.path, records, total, size, about)
    if not isinstance(readers, Readers):
        yield wording.build_unknown(loss.resource, loss.path, "which groups have unread records", readers)
    elif records.most or loss.path is None:
        yield from _observe_groups(loss, logs, deleted, readers)


def _observe_groups(
    loss: _Loss, logs: TopicLogs, deleted: Mapping[int, Bounds], readers: Readers
) -> Iterator[Observation]:
    """Yield the groups that lose records, those with most unread records first."""
    groups = readers.groups[loss.topic.name]
    unread = {group.id: _bound_unread(group, logs, deleted) for group in groups}
    ranked = sorted(groups, key=lambda group: (-unread[group.id].most, group.id))
    affected = [
        (group, item)
        for group in ranked
        if (item := wording.build_unread(loss.resource, loss.path, group.id, unread[group.id], group.members))
        is not None
    ]
    yield from (item for _, item in affected[:_MAX_NAMED_GROUPS])
    others = [unread[group.id].most for group, _ in affected[_MAX_NAMED_GROUPS:]]
    if others:
        yield wording.build_other_groups(loss.resource, loss.path, others)
    if not affected:
        yield wording.build_readers(loss.resource, loss.path, len(groups), is_complete=readers.is_complete)
    if not readers.is_complete:
        yield wording.build_hidden_groups(loss.resource, loss.path)


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


def _observe_compaction(change: Change, settings: TopicSettings | Fault | None) -> Iterator[Observation]:
    """Say what compaction requires of producers."""
    if not isinstance(settings, TopicSettings):
        return
    was_compacted, is_compacted = (
        "compact" in configs.get(CLEANUP_POLICY, "") for configs in (settings.before, settings.after)
    )
    if is_compacted and not was_compacted:
        text = (
            "Once the topic is compacted, brokers refuse records without keys. Kafka deletes all records of "
            "a key except the latest one."
        )
        yield Observation(str(change.id), "keys-required", ObservationLevel.EFFECT, text, _CLEANUP_PATH)


def _observe_growth(
    change: Change, topic: Topic, settings: TopicSettings | Fault | None
) -> Iterator[Observation]:
    """Say what more partitions mean for records with keys."""
    field = _find_field(change, "partitions")
    if field is None:
        return
    before, after = len(topic.partitions), field.after
    figures = {"partitions_before": before, "partitions_after": after}
    text = (
        f"If records have keys, most keys go to other partitions from now on ({after} instead of {before}). "
        "Consumers can then read the new records of a key before its old ones."
    )
    yield Observation(str(change.id), "keys-move", ObservationLevel.EFFECT, text, field.path, figures)
    if isinstance(settings, TopicSettings) and "compact" in settings.after.get(CLEANUP_POLICY, ""):
        text = (
            "The topic is compacted. The latest record of a key stays in its old partition forever if the "
            "new records of the key go to another partition."
        )
        yield Observation(str(change.id), "stale-keys", ObservationLevel.EFFECT, text, field.path)
    if topic.name.endswith(_STREAMS_SUFFIXES):
        text = (
            "According to its name, this is an internal topic of Kafka Streams. Applications stop if the "
            "number of partitions of such a topic changes."
        )
        yield Observation(str(change.id), "streams-topic", ObservationLevel.LOSS, text, field.path)


def _observe_writability(
    change: Change, topic: Topic, settings: TopicSettings | Fault | None
) -> Iterator[Observation]:
    """Say how many partitions reject writes with acks=all if one broker is down, before and after."""
    if not isinstance(settings, TopicSettings):
        return
    sizes_before = [len(partition.replicas) for partition in topic.partitions]
    sizes_after = _find_new_sizes(change, sizes_before)
    before = _count_unwritable(sizes_before, settings.before)
    after = _count_unwritable(sizes_after, settings.after)
    if after <= before:
        return
    text = (
        f"If one broker is down, up to {format_count(after, 'partition')} of {len(sizes_after):,} no "
        f"longer accept records from producers with acks=all (before the change: {before:,})."
    )
    figures = {"partitions_before": before, "partitions_after": after}
    path = _MIN_ISR_PATH if _find_field(change, _MIN_ISR_PATH) else _FACTOR
    yield Observation(str(change.id), "not-writable", ObservationLevel.EFFECT, text, path, figures)


def _find_new_sizes(change: Change, sizes: Sequence[int]) -> list[int]:
    """Return the number of replicas of each partition after the change."""
    factor = _find_field(change, _FACTOR)
    new_sizes = (
        list(sizes) if factor is None or not isinstance(factor.after, int) else [factor.after] * len(sizes)
    )
    for number in range(len(sizes)):
        field = _find_field(change, f"{_ASSIGNMENTS}{number}")
        if field is not None and isinstance(field.after, list | tuple):
            new_sizes[number] = len(field.after)
    return new_sizes


def _count_unwritable(sizes: Iterable[int], configs: Mapping[str, str]) -> int:
    required = int(configs.get(MIN_ISR, "1"))
    return sum(size - 1 < required for size in sizes)
