"""Observe how many records Kafka deletes from topics that inherit a new value of a broker config."""

from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.deletable_records import Bounds
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.impact.record_loss import (
    Loss,
    compute_deleted,
    compute_deleted_bytes,
    find_losses,
    hide_tiered_sizes,
    merge_limits,
    sum_bounds,
)
from kdeclare.providers.kafka.impact.topic_logs import TopicLogs, explain_missing_leader
from kdeclare.providers.kafka.impact.topic_settings import CLEANUP_POLICY, TopicChange, build_settings
from kdeclare.providers.kafka.live import Topic

_CONFIGS = "configs."
_MAX_NAMED = 3
MAX_READ_TOPICS = 100
"""The largest number of topics whose logs are read for the changes of one BrokerConfig."""


@dataclass(frozen=True, slots=True)
class InheritedChange:
    """A topic that inherits the new values of broker configs.

    before: the effective configs before the change. changed: the new values of the inherited configs.
    """

    topic: Topic
    before: Mapping[str, str]
    changed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _TopicLoss:
    """The records that Kafka deletes from one topic. size, about: see `compute_deleted_bytes`."""

    name: str
    records: Bounds
    total: int
    size: Bounds | None
    about: int | None


def observe_inherited_losses(
    reader: ImpactReader,
    resource: str,
    inherited: Sequence[InheritedChange],
    paths: Mapping[str, str],
    broker: int | None,
) -> Iterator[Observation]:
    """Yield observations about the records that Kafka deletes from topics that inherit new values.

    paths: for each topic config, the field of the BrokerConfig that changes its default.
    broker: the only broker that uses the new values. Only partitions that this broker leads count, because
        clients read them from the leader.
    """
    losses: dict[str, list[Loss]] = {}
    compacted: list[str] = []
    for each in inherited:
        change = TopicChange(resource, configs=dict(each.changed))
        for loss in find_losses(change, each.topic, build_settings(each.before, change, {})):
            if not isinstance(loss, Loss) or loss.path is None:
                continue
            if loss.is_compaction:
                compacted.append(each.topic.name)
            else:
                path = paths.get(loss.path.removeprefix(_CONFIGS), loss.path)
                losses.setdefault(path, []).append(loss)
    if compacted:
        yield _build_compacted(resource, paths[CLEANUP_POLICY], compacted)
    for path, path_losses in losses.items():
        yield from _observe_path(reader, resource, path, path_losses, broker)


def _observe_path(
    reader: ImpactReader, resource: str, path: str, losses: Sequence[Loss], broker: int | None
) -> Iterator[Observation]:
    limited = losses[:MAX_READ_TOPICS]
    unknown: dict[str, Fault | str] = {
        loss.topic.name: reason for loss in limited if (reason := explain_missing_leader(loss.topic))
    }
    readable = {loss.topic.name: loss for loss in limited if loss.topic.name not in unknown}
    topics = {name: loss.topic for name, loss in readable.items()}
    logs = reader.read_logs(topics, merge_limits(readable.values())) if topics else {}
    found: list[_TopicLoss] = []
    for name, topic_logs in logs.items():
        if isinstance(topic_logs, Fault):
            unknown[name] = topic_logs
        else:
            found.append(_compute_loss(readable[name], _select_led(topic_logs, topics[name], broker)))
    if found:
        yield _build_losses(resource, path, found, len(losses))
    if unknown:
        what = f"which records of {format_topic_count(list(unknown))} are deleted"
        yield wording.build_unknown(resource, path, what, next(iter(unknown.values())))


def _select_led(logs: TopicLogs, topic: Topic, broker: int | None) -> TopicLogs:
    if broker is None:
        return logs
    return {
        number: log
        for number, log in logs.items()
        if number < len(topic.partitions) and topic.partitions[number].leader == broker
    }


def _compute_loss(loss: Loss, logs: TopicLogs) -> _TopicLoss:
    logs = hide_tiered_sizes(loss, logs)
    records = sum_bounds(compute_deleted(loss, log) for log in logs.values())
    total = sum(log.count for log in logs.values())
    return _TopicLoss(loss.topic.name, records, total, *compute_deleted_bytes(loss, logs))


def _build_losses(resource: str, path: str, found: Sequence[_TopicLoss], affected: int) -> Observation:
    """Return the observation about deleted records. affected: the number of topics with lower limits."""
    losing = sorted((each for each in found if each.records.most), key=lambda each: -each.records.most)
    records = sum_bounds(each.records for each in found)
    total = sum(each.total for each in found)
    size = _sum_sizes(found)
    about = None if size is None else sum(each.about or 0 for each in found)
    figures: dict[str, JsonValue] = {
        "topics": len(losing),
        "topics_read": len(found),
        "topics_total": affected,
        "records_at_least": records.least,
        "records_at_most": records.most,
        "records_total": total,
        "bytes_at_least": size.least if size else None,
        "bytes_at_most": size.most if size else None,
        "bytes_about": about,
    }
    scope = "" if len(found) == affected else f"Of {affected:,} topics, kdeclare read {len(found):,}. "
    if not losing:
        text = f"{scope}No records of these topics currently exceed the new limits."
        return Observation(resource, "deletable-records", ObservationLevel.INFO, text, path, figures)
    deleted = wording.format_deleted(records, total, about)
    names = format_topic_count([each.name for each in losing])
    text = f"{scope}Kafka deletes {deleted} of {names}."
    return Observation(resource, "deletable-records", ObservationLevel.LOSS, text, path, figures)


def _sum_sizes(found: Sequence[_TopicLoss]) -> Bounds | None:
    sizes = [each.size for each in found if each.size is not None]
    return sum_bounds(sizes) if len(sizes) == len(found) else None


def _build_compacted(resource: str, path: str, names: Sequence[str]) -> Observation:
    verb = "is" if len(names) == 1 else "are"
    text = (
        f"{format_topic_count(names)} {verb} compacted: Kafka deletes all existing records without keys, and "
        "all but the latest record of each key. Brokers reject new records without keys."
    )
    return Observation(resource, "keys-required", ObservationLevel.LOSS, text, path, {"topics": len(names)})


def format_topics(names: Sequence[str]) -> str:
    """Return the first three names, and the number of further names."""
    more = len(names) - _MAX_NAMED
    return f"{', '.join(names[:_MAX_NAMED])}{f' and {more:,} more' if more > 0 else ''}"


def format_topic_count(names: Sequence[str]) -> str:
    """Return a number of topics with their names, such as ``2 topics (a, b)``."""
    return f"{format_count(len(names), 'topic')} ({format_topics(names)})"
