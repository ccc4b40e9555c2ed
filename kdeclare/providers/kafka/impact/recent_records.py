"""Observe the impact of topic changes where it depends on the keys and sizes of recent records."""

from collections.abc import Iterator, Mapping

from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.changes import Action, Change
from kdeclare.providers.kafka.impact import sample_wording, wording
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.impact.record_sample import RecordSample
from kdeclare.providers.kafka.impact.topic_logs import Readers
from kdeclare.providers.kafka.impact.topic_settings import (
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    TopicSettings,
    find_config_field,
    require_known,
)
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.usage.topic_purpose import TopicPurpose, find_purpose

PARTITIONS = "partitions"
"""The field path of the partition count."""
_POLICY_PATH, _SIZE_PATH = f"configs.{CLEANUP_POLICY}", f"configs.{MAX_MESSAGE_BYTES}"
_READ = "Read"
_EFFECTS_OF_GROWTH = {
    TopicPurpose.STREAMS: "Applications stop if the number of partitions of such a topic changes.",
    TopicPurpose.CONNECT: "Workers do not start if the topic with their configs has more than one partition. "
    "They can read outdated offsets if records with the same key are in different partitions.",
    TopicPurpose.SCHEMA_REGISTRY: "A registry does not start if this topic has more than one partition.",
}
"""The impact of a higher partition count on the internal topics of Kafka Streams and of other systems.

See `InternalTopicManager` of Kafka Streams, `KafkaTopicBasedBackingStore` and `KafkaConfigBackingStore` of
Kafka Connect, and `KafkaStore` of Schema Registry.
"""

Settings = TopicSettings | Fault | None
Sample = RecordSample | Fault | str


def can_affect_records(change: Change) -> bool:
    """Return whether the fields of the change have an impact that can depend on recent records."""
    return change.action is Action.UPDATE and any(
        field.path in (PARTITIONS, _POLICY_PATH, _SIZE_PATH) for field in change.fields
    )


def observe_recent_records(
    reader: ImpactReader,
    topics: Mapping[str, Topic],
    changes: Mapping[str, Change],
    settings: Mapping[str, TopicSettings | Fault],
) -> Iterator[Observation]:
    """Yield the impact on records with keys and on large batches. Sample only the topics that need a sample.

    topics, changes, settings: mappings by topic name.
    """
    affected = {name: change for name, change in changes.items() if can_affect_records(change)}
    sampled = {
        name: topics[name]
        for name, change in affected.items()
        if _needs_sample(change, topics[name], settings.get(name))
    }
    samples = reader.read_samples(sampled)
    growing = {name: change for name, change in affected.items() if _is_growing(change)}
    yield from _observe_own_assignments(reader, growing)
    for name, change in affected.items():
        yield from _observe_growth(change, topics[name], settings.get(name), samples.get(name))
        yield from _observe_size_limit(change, settings.get(name), samples.get(name))
        yield from _observe_cleanup(change, settings.get(name), samples.get(name))


def _needs_sample(change: Change, topic: Topic, settings: Settings) -> bool:
    if _is_growing(change) and not _has_known_keys(topic, settings):
        return True
    if not isinstance(settings, TopicSettings):
        return False
    return _find_lower_size_limit(change, settings) is not None or _is_newly_compacted(change, settings)


def _is_growing(change: Change) -> bool:
    return any(field.path == PARTITIONS for field in change.fields)


def _has_known_keys(topic: Topic, settings: Settings) -> bool:
    """Return whether the impact of more partitions is known without a sample.

    This is the case if the topic is compacted or belongs to another system.
    """
    is_compacted = isinstance(settings, TopicSettings) and settings.is_compacted_before
    return is_compacted or find_purpose(topic) in _EFFECTS_OF_GROWTH


def _find_lower_size_limit(change: Change, settings: TopicSettings) -> int | None:
    """Return the new limit on the size of batches; None if the limit is unknown or not lower than before."""
    if find_config_field(change, MAX_MESSAGE_BYTES) is None or MAX_MESSAGE_BYTES in settings.unknown:
        return None
    before, after = settings.before.get(MAX_MESSAGE_BYTES), settings.after.get(MAX_MESSAGE_BYTES)
    if after is None or (before is not None and int(after) >= int(before)):
        return None
    return int(after)


def _is_newly_compacted(change: Change, settings: TopicSettings) -> bool:
    is_changed = find_config_field(change, CLEANUP_POLICY) is not None
    return is_changed and settings.is_compacted_after and not settings.is_compacted_before


def _observe_growth(
    change: Change, topic: Topic, settings: Settings, sample: Sample | None
) -> Iterator[Observation]:
    """Yield the impact of more partitions on records with keys."""
    field = next((field for field in change.fields if field.path == PARTITIONS), None)
    if field is None:
        return
    resource = str(change.id)
    usable: RecordSample | None = None
    if sample is not None and not _has_known_keys(topic, settings):
        yield from _observe_unknown_keys(resource, field.path, sample)
        if isinstance(sample, RecordSample) and (sample.keyed or sample.missing is None):
            usable = sample
    yield sample_wording.build_keys_move(resource, field.path, len(topic.partitions), field.after, usable)
    if isinstance(settings, TopicSettings) and settings.is_compacted_after:
        text = (
            "The topic is compacted. The latest record of a key stays in its old partition forever if the "
            "new records of the key go to another partition."
        )
        yield Observation(resource, "stale-keys", ObservationLevel.EFFECT, text, field.path)
    purpose = find_purpose(topic)
    if purpose in _EFFECTS_OF_GROWTH:
        effect = _EFFECTS_OF_GROWTH[purpose]
        text = f"According to its name, this is an internal topic of {purpose.label}. {effect}"
        yield Observation(resource, "internal-topic", ObservationLevel.LOSS, text, field.path)


def _observe_own_assignments(reader: ImpactReader, changes: Mapping[str, Change]) -> Iterator[Observation]:
    """Yield observations about groups whose consumers choose their partitions themselves.

    Such consumers might not read new partitions. changes: the changes that add partitions, by topic.
    """
    if not changes:
        return
    readers = reader.read_readers()
    for name, change in changes.items():
        resource = str(change.id)
        if not isinstance(readers, Readers):
            what = "which groups have consumers that choose their partitions themselves"
            yield wording.build_unknown(resource, PARTITIONS, what, readers)
            continue
        groups = [group.id for group in readers.groups.get(name, ()) if group.is_simple]
        if groups:
            yield sample_wording.build_own_assignments(resource, PARTITIONS, groups)


def _observe_unknown_keys(resource: str, path: str, sample: Sample) -> Iterator[Observation]:
    """Yield an observation if it is unknown whether some or all recent records have keys."""
    reason = sample.missing if isinstance(sample, RecordSample) else sample
    if reason is not None:
        other = "other " if isinstance(sample, RecordSample) and sample.records else ""
        what = f"whether {other}recent records have keys"
        yield wording.build_unknown(resource, path, what, reason, right=_READ)


def _observe_size_limit(change: Change, settings: Settings, sample: Sample | None) -> Iterator[Observation]:
    """Yield an observation about recent batches that are larger than the new, lower limit."""
    if find_config_field(change, MAX_MESSAGE_BYTES) is None:
        return
    resource, what = str(change.id), "whether brokers reject batches like the recent ones"
    known = require_known(settings, MAX_MESSAGE_BYTES)
    if not isinstance(known, TopicSettings):
        yield wording.build_unknown(resource, _SIZE_PATH, what, known)
        return
    limit = _find_lower_size_limit(change, known)
    if limit is None or sample is None:
        return
    if not isinstance(sample, RecordSample):
        yield wording.build_unknown(resource, _SIZE_PATH, what, sample, right=_READ)
    elif sample.is_empty:
        return
    elif not sample.batches:
        yield wording.build_unknown(resource, _SIZE_PATH, what, "the sample contains no records")
    else:
        yield sample_wording.build_large_batches(resource, _SIZE_PATH, limit, sample)


def _observe_cleanup(change: Change, settings: Settings, sample: Sample | None) -> Iterator[Observation]:
    """Yield observations about the end of compaction, or about records rejected by newly compacted topics."""
    if find_config_field(change, CLEANUP_POLICY) is None or not isinstance(settings, TopicSettings):
        return
    resource = str(change.id)
    if settings.is_compacted_before and not settings.is_compacted_after:
        limits = settings.limits_after
        yield sample_wording.build_end_of_compaction(
            resource,
            _POLICY_PATH,
            deletes_before=settings.limits_before.deletes,
            deletes_after=limits.deletes,
            is_limited=limits.retention_ms is not None or limits.retention_bytes is not None,
        )
    if sample is None or not _is_newly_compacted(change, settings):
        return
    yield from _observe_unknown_keys(resource, _POLICY_PATH, sample)
    if not isinstance(sample, RecordSample) or sample.is_empty:
        return
    if sample.keyed < sample.records or sample.missing is None:
        yield sample_wording.build_missing_keys(resource, _POLICY_PATH, sample)
