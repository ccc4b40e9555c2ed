"""Observe what the changes of a plan mean for the records, producers and consumers of topics."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.changes import Action, Change, FieldChange, Risk
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.impact.outage_impact import observe_outages, review_outages
from kdeclare.providers.kafka.impact.record_loss import Loss, build_unknown_loss, find_losses, observe_losses
from kdeclare.providers.kafka.impact.topic_settings import TopicChange, TopicSettings, build_topic_change
from kdeclare.providers.kafka.live import KafkaState, Topic

_TOPIC, _BROKER_CONFIG = "Topic", "BrokerConfig"
_SEVERE = (Risk.DESTRUCTIVE, Risk.IRREVERSIBLE)
_PARTITIONS = "partitions"
_STREAMS_SUFFIXES = ("-changelog", "-repartition")
"""The suffixes of the internal topics of Kafka Streams (org.apache.kafka.streams.processor.internals)."""


def observe_topics(
    reader: ImpactReader, live: KafkaState, operations: Sequence[Operation], changes: Sequence[Change]
) -> Iterator[Observation]:
    """Yield what the changes of topics mean. What cannot be read becomes an observation, too.

    Nothing is read unless a change can delete records or affects a setting on which the impact depends, or
    unless an operation changes how the replicas of a partition are distributed.
    """
    existing = {
        change.id.name: change
        for change in changes
        if change.id.kind == _TOPIC and change.action is not Action.CREATE and change.id.name in live.topics
    }
    topic_changes = {name: build_topic_change(change) for name, change in existing.items()}
    outages = review_outages(live, operations, changes)
    settings = _read_settings(reader, live, existing, topic_changes, outages.topics)
    losses: list[Loss] = []
    for name, topic_change in topic_changes.items():
        if not topic_change.can_lose_records:
            continue
        for found in find_losses(topic_change, live.topics[name], settings.get(name)):
            if isinstance(found, Loss):
                losses.append(found)
            else:
                yield build_unknown_loss(found)
    yield from observe_losses(reader, losses)
    for name, change in existing.items():
        if change.action is Action.UPDATE:
            yield from _observe_growth(change, live.topics[name], settings.get(name))
    yield from observe_outages(outages, settings)
    for change in changes:
        if change.id.kind == _BROKER_CONFIG:
            yield from _observe_broker_config(change)


def _read_settings(
    reader: ImpactReader,
    live: KafkaState,
    changes: Mapping[str, Change],
    topic_changes: Mapping[str, TopicChange],
    others: Collection[str],
) -> Mapping[str, TopicSettings | Fault]:
    """Read the configs of the topics whose impact depends on them.

    changes: the changes of topics. others: topics whose configs are needed even if they do not change.
    """
    needed = {
        name: topic_change
        for name, topic_change in topic_changes.items()
        if topic_change.can_lose_records or _find_field(changes[name], _PARTITIONS)
    }
    for name in others:
        needed.setdefault(name, topic_changes.get(name) or TopicChange(f"{_TOPIC}/{name}"))
    return reader.read_settings(needed, lambda: next(iter(sorted(live.cluster.serving_broker_ids)), None))


def _find_field(change: Change, path: str) -> FieldChange | None:
    return next((field for field in change.fields if field.path == path), None)


def _observe_growth(
    change: Change, topic: Topic, settings: TopicSettings | Fault | None
) -> Iterator[Observation]:
    """Say what more partitions mean for records with keys."""
    field = _find_field(change, _PARTITIONS)
    if field is None:
        return
    before, after = len(topic.partitions), field.after
    figures = {"partitions_before": before, "partitions_after": after}
    text = (
        f"Most keys of new records map to different partitions ({after} instead of {before}). Consumers can "
        "then read the new records of a key before its old ones."
    )
    yield Observation(str(change.id), "keys-move", ObservationLevel.EFFECT, text, field.path, figures)
    if isinstance(settings, TopicSettings) and settings.is_compacted_after:
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


def _observe_broker_config(change: Change) -> Iterator[Observation]:
    """Say that kdeclare does not determine which topics a default of the brokers affects."""
    for field in change.fields:
        if field.risk in _SEVERE:
            what, reason = "the impact on topics without an override", "it is not computed for broker configs"
            yield wording.build_unknown(str(change.id), field.path, what, reason)
