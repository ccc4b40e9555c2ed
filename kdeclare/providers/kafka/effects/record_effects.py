"""Observe how many records Kafka has deleted after a run, and whether deleted topics are gone."""

from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.observed_effect import (
    EffectRequest,
    EffectStatus,
    ObservedEffect,
    compare_observation,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.units import format_amount, format_count
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.impact.topic_logs import (
    INCOMPLETE,
    explain_missing_leader,
    read_before,
    read_log_bounds,
)
from kdeclare.providers.kafka.impact.wording import format_reason
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, NewTopic

_TOPIC = "Topic"
_DELETED_TOPIC, _EXPIRED = "deleted-records", "deletable-records"
_CHECK_INTERVAL = "log.retention.check.interval.ms"


def observe_record_effects(
    cluster: Cluster, request: EffectRequest, deadline: float
) -> Iterator[ObservedEffect]:
    """Yield, for each prediction, how many records Kafka has deleted or whether the deleted topic is gone.

    deadline: no request begins after this time (`time.monotonic`).
    """
    topic_predictions = [p for p in request.predictions if ResourceId.parse(p.resource).kind == _TOPIC]
    deleted = [item for item in topic_predictions if item.code == _DELETED_TOPIC]
    expiring = [item for item in topic_predictions if item.code == _EXPIRED]
    if not deleted and not expiring:
        return
    names = sorted({_get_topic(item) for item in (*deleted, *expiring)})
    topics = read_before(deadline, lambda: cluster.topics(names))
    if isinstance(topics, Fault):
        for item in (*deleted, *expiring):
            yield _build_unknown(item, topics)
        return
    for item in deleted:
        yield _observe_deletion(item, topics.get(_get_topic(item)), request.operations)
    effects = list(_observe_expiry(cluster, expiring, topics, deadline))
    is_pending = any(effect.status is EffectStatus.PENDING for effect in effects)
    interval = _read_check_interval(cluster, topics, deadline) if is_pending else None
    for item, effect in zip(expiring, effects, strict=True):
        if effect.status is EffectStatus.PENDING and interval is not None:
            every = format_amount(_CHECK_INTERVAL, interval)
            text = f"{effect.observed} Every {every}, brokers check which records to delete."
            yield compare_observation(item, effect.status, text, effect.figures)
        elif effect.figures.get("records_deleted") != 0 or item.figures.get("records_at_most") != 0:
            yield effect  # topics without predicted or actual deletions are left out


def _get_topic(prediction: Observation) -> str:
    return ResourceId.parse(prediction.resource).name


def _build_unknown(prediction: Observation, reason: Fault | str) -> ObservedEffect:
    text = f"kdeclare could not observe the records: {format_reason(reason)}."
    return compare_observation(prediction, EffectStatus.UNKNOWN, text)


def _observe_deletion(
    prediction: Observation, topic: Topic | None, operations: Sequence[Operation]
) -> ObservedEffect:
    """Return the observed effect of a topic deletion: whether the topic is gone.

    The topic can exist again, for example because a producer has caused its automatic creation.
    operations: the successful operations of the run.
    """
    if topic is None:
        return compare_observation(prediction, EffectStatus.OBSERVED, "The topic is gone.", {"exists": False})
    deleted_ids = {
        op.args.topic_id
        for op in operations
        if isinstance(op.args, DeleteTopicArgs) and str(op.resource) == prediction.resource
    }
    is_replaced = any(
        isinstance(op.args, NewTopic) and str(op.resource) == prediction.resource for op in operations
    )
    if topic.topic_id in deleted_ids:
        text, status = "Brokers still show the topic.", EffectStatus.PENDING
    elif is_replaced:
        text, status = "The earlier topic is gone, and the new topic exists.", EffectStatus.OBSERVED
    else:
        text = "The topic is gone, but a client has created a new topic with its name."
        status = EffectStatus.UNEXPECTED
    return compare_observation(prediction, status, text, {"exists": True})


def _observe_expiry(
    cluster: Cluster, predictions: Sequence[Observation], topics: Mapping[str, Topic], deadline: float
) -> Iterator[ObservedEffect]:
    """Yield, for each prediction of deleted records, the observed effect, in the order of the predictions."""
    readable = {
        name: topics[name]
        for name in dict.fromkeys(map(_get_topic, predictions))
        if name in topics and explain_missing_leader(topics[name]) is None
    }
    bounds = read_log_bounds(cluster, readable, deadline)
    for item in predictions:
        name = _get_topic(item)
        topic, logs = topics.get(name), bounds.get(name)
        if topic is None:
            yield _build_unknown(item, "the topic does not exist")
        elif logs is None:
            yield _build_unknown(item, explain_missing_leader(topic) or INCOMPLETE)
        elif isinstance(logs, Fault):
            yield _build_unknown(item, logs)
        elif len(logs) < len(topic.partitions):
            yield _build_unknown(item, INCOMPLETE)
        else:
            yield _compare_starts(item, logs)


def _compare_starts(
    prediction: Observation, logs: Mapping[TopicPartition, tuple[int, ...]]
) -> ObservedEffect:
    """Compare the number of deleted records with the prediction.

    The records between the earlier and the current first offset of each log have been deleted.
    """
    start_before = _get_number(prediction.figures, "log_starts_total")
    least = _get_number(prediction.figures, "records_at_least")
    most = _get_number(prediction.figures, "records_at_most")
    if start_before is None or least is None or most is None:
        return _build_unknown(prediction, "the plan does not contain the log start offsets")
    deleted = max(0, sum(start for start, *_ in logs.values()) - start_before)
    if deleted > most:
        status = EffectStatus.UNEXPECTED
    else:
        status = EffectStatus.PENDING if deleted < max(least, min(1, most)) else EffectStatus.OBSERVED
    if status is EffectStatus.PENDING:
        text = f"So far, Kafka has deleted {deleted:,} of these records."
    else:
        text = f"Kafka has deleted {format_count(deleted, 'record')}."
    return compare_observation(prediction, status, text, {"records_deleted": deleted})


def _get_number(figures: JsonObject, name: str) -> int | None:
    number = figures.get(name)
    return number if isinstance(number, int) else None


def _read_check_interval(cluster: Cluster, topics: Mapping[str, Topic], deadline: float) -> int | None:
    """Return how often brokers check for records to delete, in milliseconds; None if unknown."""
    leaders = [p.leader for topic in topics.values() for p in topic.partitions if p.leader is not None]
    if not leaders:
        return None
    broker = ConfigResource(ConfigScope.BROKER, str(min(leaders)))
    query = ConfigQuery(broker, frozenset({_CHECK_INTERVAL}))
    described = read_before(deadline, lambda: cluster.describe_configs_partially([query]))
    entries = None if isinstance(described, Fault) else described.get(broker)
    if entries is None or isinstance(entries, Fault) or _CHECK_INTERVAL not in entries:
        return None
    value = entries[_CHECK_INTERVAL].value
    return int(value) if isinstance(value, str) and value.isdecimal() else None
