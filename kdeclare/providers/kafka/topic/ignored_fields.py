"""The fields of a topic that ``lifecycle.ignoreChanges`` lists."""

from collections.abc import Sequence
from dataclasses import replace

from kdeclare.providers.kafka.config.ignored_configs import find_ignored_keys
from kdeclare.providers.kafka.reassignment.placement_request import Replicas
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.providers.kafka.topic.spec import TopicBody


def ignore_topic_fields(body: TopicBody, current: Sequence[Replicas] | None) -> TopicBody:
    """Return the body without the ignored fields of an existing topic.

    current: the replicas of each partition; None if the topic does not exist. A new topic gets all fields.
    """
    if not body.ignored or current is None:
        return replace(body, ignored=()) if body.ignored else body
    ignored_keys = find_ignored_keys(body.ignored)
    reduced = replace(body, configs={k: v for k, v in body.configs.items() if k not in ignored_keys})
    if "assignments" in body.ignored and body.assignments is not None:
        # Partitions and replication factor follow from the assignments.
        reduced = replace(reduced, assignments=None, partitions=None)
    if "placement" in body.ignored:
        reduced = replace(reduced, strategy=None, racks=())
    if "partitions" in body.ignored and body.assignments is None:
        reduced = replace(reduced, partitions=None)
    if "replicationFactor" in body.ignored and body.assignments is None:
        reduced = _keep_replication_factor(reduced, current)
    return reduced


def _keep_replication_factor(body: TopicBody, current: Sequence[Replicas]) -> TopicBody:
    """Return the body without the declared replication factor.

    If a placement strategy is declared, the current replication factor of the topic replaces the declared
    one. If the partitions have different replication factors, the strategy is removed as well.
    """
    sizes = {len(replicas) for replicas in current}
    if body.strategy is not None and len(sizes) == 1:
        return replace(body, replication_factor=sizes.pop())
    return replace(body, replication_factor=None, strategy=None, racks=())


_NOTHING_APPLIED = TopicRecord()


def hide_ignored_shape(owned: TopicRecord | None, body: TopicBody) -> TopicRecord | None:
    """Remove the ignored fields, except configs, from the record, so that they are not reported as drift."""
    return None if owned is None else _copy_shape(_NOTHING_APPLIED, owned, body)


def restore_ignored_shape(record: TopicRecord, owned: TopicRecord | None, body: TopicBody) -> TopicRecord:
    """Copy the ignored fields from the previous record to the new record, because they are not applied."""
    return _copy_shape(owned or _NOTHING_APPLIED, record, body)


def _copy_shape(source: TopicRecord, record: TopicRecord, body: TopicBody) -> TopicRecord:
    """Return ``record`` with the ignored fields, except configs, copied from ``source``.

    body: the result of `ignore_topic_fields`, which says which fields are ignored.
    """
    if "assignments" in body.ignored and body.partitions is None:  # the assignments determined the partitions
        record = replace(record, assignments=source.assignments, partitions=source.partitions)
    if "partitions" in body.ignored:
        record = replace(record, partitions=source.partitions)
    if "replicationFactor" in body.ignored:
        record = replace(record, replicationFactor=source.replicationFactor)
    return record
