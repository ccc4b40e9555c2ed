"""Observe the impact of a plan on the records, producers and consumers of topics."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.changes import Action, Change
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.impact.inherited_configs import observe_broker_defaults
from kdeclare.providers.kafka.impact.outage_impact import observe_outages, review_outages
from kdeclare.providers.kafka.impact.recent_records import can_affect_records, observe_recent_records
from kdeclare.providers.kafka.impact.record_loss import Loss, build_unknown_loss, find_losses, observe_losses
from kdeclare.providers.kafka.impact.topic_settings import TopicChange, TopicSettings, build_topic_change
from kdeclare.providers.kafka.live import KafkaState

_TOPIC = "Topic"


def observe_topics(
    reader: ImpactReader, live: KafkaState, operations: Sequence[Operation], changes: Sequence[Change]
) -> Iterator[Observation]:
    """Yield the impact of the changes to topics. Data that cannot be read results in an observation, too.

    Data is read only if a change can delete records, if it affects a setting on which the impact depends, or
    if an operation changes how the replicas of a partition are distributed.
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
    kept = {name: change for name, change in existing.items() if change.action is not Action.REPLACE}
    yield from observe_recent_records(reader, live.topics, kept, settings)
    yield from observe_outages(outages, settings)
    yield from observe_broker_defaults(reader, changes, topic_changes)


def _read_settings(
    reader: ImpactReader,
    live: KafkaState,
    changes: Mapping[str, Change],
    topic_changes: Mapping[str, TopicChange],
    others: Collection[str],
) -> Mapping[str, TopicSettings | Fault]:
    """Read the configs of the topics whose impact depends on them.

    changes: the changes to topics. others: topics whose configs are needed even if the topics do not change.
    """
    needed = {
        name: topic_change
        for name, topic_change in topic_changes.items()
        if topic_change.can_lose_records or can_affect_records(changes[name])
    }
    for name in others:
        needed.setdefault(name, topic_changes.get(name) or TopicChange(f"{_TOPIC}/{name}"))
    return reader.read_settings(needed, lambda: next(iter(sorted(live.cluster.serving_broker_ids)), None))
