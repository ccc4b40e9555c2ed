"""Build the observations about changes whose impact depends on recent records."""

from collections.abc import Sequence
from math import lcm

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.units import format_names, format_size
from kdeclare.providers.kafka.impact.record_sample import RecordSample


def build_keys_move(
    resource: str, path: str, before: int, after: JsonValue, sample: RecordSample | None
) -> Observation:
    """Return the observation about the impact of more partitions on records with keys.

    before, after: the numbers of partitions. sample: None if it is unknown whether records have keys.
    """
    figures: dict[str, JsonValue] = {"partitions_before": before, "partitions_after": after}
    if sample is not None:
        figures |= {"records_sampled": sample.records, "records_with_keys": sample.keyed}
    level = ObservationLevel.EFFECT
    text = (
        f"With {after} partitions instead of {before}, {_describe_share(before, after)} keys of new records "
        "map to a different partition than before. Consumers can then read the new records of a key before "
        "its old records."
    )
    if sample is not None and sample.keyed:
        text = f"{_describe_keys(sample)}. {text}"
    elif sample is not None:
        level = ObservationLevel.INFO
        text = (
            "The topic holds no records, so no key has records in several partitions."
            if sample.is_empty
            else f"{_describe_keys(sample)}. Adding partitions does not affect records without keys."
        )
    return Observation(resource, "keys-move", level, text, path, figures)


def _describe_share(before: int, after: JsonValue) -> str:
    """Return, in words, how many keys map to a different partition than before the change.

    This assumes that producers choose the partition by the hash of the key.
    """
    if not isinstance(after, int):
        return "most"
    percent = round(100 * (1 - before / lcm(before, after)))
    return "half of the" if percent == 50 else f"about {percent}% of the"


def _describe_keys(sample: RecordSample) -> str:
    total, keyed = sample.records, sample.keyed
    if total == 1:
        return f"The only sampled recent record has {'a' if keyed else 'no'} key"
    if keyed == total:
        return f"All {total:,} sampled recent records have keys"
    if not keyed:
        return f"None of the {total:,} sampled recent records has a key"
    return f"{keyed:,} of {total:,} sampled recent records {'has a key' if keyed == 1 else 'have keys'}"


def build_own_assignments(resource: str, path: str, groups: Sequence[str]) -> Observation:
    """Return the observation that clients that do not join their groups might not read new partitions.

    groups: the groups for which such clients commit offsets, at least one.
    """
    noun = "group" if len(groups) == 1 else "groups"
    shown = f"group '{groups[0]}'" if len(groups) == 1 else f"groups {format_names(groups)}"
    text = (
        f"Clients commit offsets for {shown} without joining the {noun}. If they choose their partitions "
        "themselves, they do not read the new partitions."
    )
    figures = {"groups": list[JsonValue](groups)}
    return Observation(resource, "own-assignments", ObservationLevel.EFFECT, text, path, figures)


def build_missing_keys(resource: str, path: str, sample: RecordSample) -> Observation:
    """Return the observation about recent records that the topic would reject once it is compacted."""
    total = sample.records
    missing = total - sample.keyed
    figures = {"records_sampled": total, "records_without_keys": missing}
    if not missing:
        return Observation(
            resource,
            "records-without-keys",
            ObservationLevel.INFO,
            f"{_describe_keys(sample)}.",
            path,
            figures,
        )
    if missing < total:
        records = "record has no key" if missing == 1 else "records have no keys"
        keys = f"{missing:,} of {total:,} sampled recent {records}"
    else:
        keys = _describe_keys(sample)
    text = f"{keys}. Once the topic is compacted, brokers reject such records."
    return Observation(resource, "records-without-keys", ObservationLevel.LOSS, text, path, figures)


def build_large_batches(resource: str, path: str, limit: int, sample: RecordSample) -> Observation:
    """Return the observation about recent batches that are larger than the new limit. limit: in bytes."""
    total, largest = len(sample.batches), sample.largest_batch
    rejected = [batch for batch in sample.batches if batch.size > limit]
    figures = {
        "batches_sampled": total,
        "batches_over_limit": len(rejected),
        "single_records_over_limit": sum(batch.records == 1 for batch in rejected),
        "largest_batch_bytes": largest,
        "limit_bytes": limit,
    }
    limit_text, largest_text = _format_sizes(limit, largest)
    level = ObservationLevel.LOSS if rejected else ObservationLevel.INFO
    batches = f"{total:,} sampled recent batches"
    if total == 1:
        accept = "reject" if rejected else "accept"
        size = f"more than {limit_text}" if rejected else f"up to {limit_text}"
        text = f"Brokers {accept} batches of {size}: the only sampled recent batch has {largest_text}."
    elif rejected:
        larger = f"{'is' if len(rejected) == 1 else 'are'} larger (up to {largest_text})"
        text = f"Brokers reject batches of more than {limit_text}: {len(rejected):,} of {batches} {larger}."
    else:
        text = f"None of {batches} is larger than {limit_text}. The largest has {largest_text}."
    return Observation(resource, "large-batches", level, text, path, figures)


def _format_sizes(first: int, second: int) -> tuple[str, str]:
    """Format two sizes. If rounding would make different sizes look equal, format them in bytes."""
    texts = format_size(first), format_size(second)
    return (f"{first:,} bytes", f"{second:,} bytes") if first != second and texts[0] == texts[1] else texts


def build_end_of_compaction(
    resource: str, path: str, *, deletes_before: bool, deletes_after: bool, is_limited: bool
) -> Observation:
    """Return the observation about the effects of no longer compacting a topic.

    deletes_before, deletes_after: whether ``cleanup.policy`` contains ``delete``. is_limited: whether the
        topic has a retention limit.
    """
    kept = "It keeps tombstones and all new records of a key, not only the latest one"
    if not deletes_after or not is_limited:
        kept = f"{kept}, without any limit"
    elif deletes_before:
        kept = f"{kept}, until they exceed the retention limits"
    else:
        kept = (
            f"{kept}, until they exceed the retention limits. It then deletes even the latest record of a key"
        )
    text = f"Kafka no longer compacts the topic. {kept}. delete.retention.ms no longer has an effect."
    return Observation(resource, "compaction-ends", ObservationLevel.EFFECT, text, path)
