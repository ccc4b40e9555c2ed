"""Build the observations about the impact of a change to a topic."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.units import format_count, format_size
from kdeclare.providers.kafka.error_names import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
)
from kdeclare.providers.kafka.impact.deletable_records import Bounds

DESCRIBE, READ = "Describe", "Read"
_MISSING_RIGHTS = {
    TOPIC_AUTHORIZATION_FAILED: "the {right} permission on the topic",
    GROUP_AUTHORIZATION_FAILED: "the Describe permission on the groups",
    CLUSTER_AUTHORIZATION_FAILED: "the Describe permission on the cluster",
}
"""For each authorization error of Kafka, the permission that is missing."""
HIDDEN_GROUPS = (
    "without the Describe permission on the cluster, kdeclare sees only the groups that it is permitted to "
    "describe"
)
UNKNOWN_READERS = (
    "share groups, Kafka Streams groups with members, groups of an unknown type, and groups that are "
    "rebalancing or whose members have no assigned partitions"
)
"""The groups for which kdeclare does not know which topics they read, see `Readers`."""


def build_loss(
    resource: str,
    path: str | None,
    records: Bounds,
    total: int,
    size: Bounds | None,
    about: int | None,
    starts: int,
    *,
    kept_since_ms: int | None = None,
) -> Observation:
    """Return the observation about the records that a change deletes.

    records, total: the deleted records and all records of the topic. size, about: the bounds and the probable
    value of the deleted bytes; None if unknown. starts: the sum of the first offsets of all partitions.
    kept_since_ms: a timestamp. Records with this or a later timestamp are not deleted. None if any record
        can be deleted because of a size limit, or if no record remains.
    """
    figures = {
        "records_at_least": records.least,
        "records_at_most": records.most,
        "records_total": total,
        "bytes_at_least": size.least if size else None,
        "bytes_at_most": size.most if size else None,
        "bytes_about": about,
        "kept_since_ms": kept_since_ms if records.most else None,
        "log_starts_total": starts,
    }
    if path is None:
        text = f"The topic holds {_format_amount(total, about)}." if total else "The topic holds no records."
        code = "deleted-records"
    elif not records.most:
        code, text = "deletable-records", "No records currently exceed the new limits."
    else:
        code = "deletable-records"
        text = f"Kafka deletes {format_deleted(records, total, about)}."
        if kept_since_ms is not None:
            text += f" It keeps all records since {format_record_time(kept_since_ms)}."
    level = ObservationLevel.LOSS if records.most else ObservationLevel.INFO
    return Observation(resource, code, level, text, path, figures)


def format_deleted(records: Bounds, total: int, about: int | None) -> str:
    """Format a number of deleted records, with their share and their size.

    records, total: the deleted records, at least one, and all records. about: the probable number of deleted
    bytes; None if unknown.
    """
    share = f"{100 * records.most / total:.3g}%"
    notes = [share if records.is_exact else f"up to {share}"]
    if about is not None:
        notes.append(f"about {format_size(about)}")
    return f"{format_bounds(records)} of {format_count(total, 'record')} ({', '.join(notes)})"


def build_compaction(resource: str, path: str | None) -> Observation:
    """Return the observation about the records that compaction deletes, and its effect on producers."""
    text = (
        "Compaction deletes all existing records without keys, and all but the latest record of each key. "
        "Brokers reject new records without keys."
    )
    return Observation(resource, "keys-required", ObservationLevel.LOSS, text, path)


def build_unread(resource: str, path: str | None, group: str, unread: Bounds, members: int) -> Observation:
    """Return the observation that a group loses records that it has not read, or a topic that it reads."""
    figures: dict[str, JsonValue] = {
        "group": group,
        "unread_at_least": unread.least,
        "unread_at_most": unread.most,
        "members": members,
    }
    if path is None and members:
        readers = f"{format_count(members, 'member')} of group '{group}' read{'s' * (members == 1)} the topic"
        unread_text = f", and {format_count(unread.most, 'record')} are unread" if unread.most else ""
        text = f"{readers}{unread_text}."
    else:
        active = f" (it has {format_count(members, 'member')})" if members else ""
        text = f"Group '{group}' has not read {format_bounds(unread)} of these records{active}."
    level = ObservationLevel.LOSS if unread.most else ObservationLevel.EFFECT
    return Observation(resource, "unread-records", level, text, path, figures)


def build_other_groups(resource: str, path: str | None, unread: Sequence[int]) -> Observation:
    """Return the observation about the groups that no other observation names.

    unread: the number of unread records of each of these groups.
    """
    most, others = max(unread), format_count(len(unread), "other group")
    if most:
        verb, each = ("have", " each") if len(unread) > 1 else ("has", "")
        text = f"{others} {verb} not read up to {most:,} of these records{each}."
    else:
        text = f"{others} {'have' if len(unread) > 1 else 'has'} members that read the topic."
    figures = {"groups": len(unread), "unread_at_most": most}
    level = ObservationLevel.LOSS if most else ObservationLevel.EFFECT
    return Observation(resource, "unread-records", level, text, path, figures)


def build_readers(resource: str, path: str | None, groups: int, *, is_complete: bool) -> Observation:
    """Return the observation that no group loses records.

    groups: the number of groups that read the topic.
    """
    if groups:
        text = (
            "All groups have read these records."
            if is_complete
            else "All known readers have read these records."
        )
    else:
        text = "No group reads the topic." if is_complete else "No group is known to read the topic."
    figures = {"groups": groups, "all_groups_visible": is_complete}
    return Observation(resource, "unread-records", ObservationLevel.INFO, text, path, figures)


def build_writers(
    resource: str, last_write: int | Fault | None, producers: int | Fault
) -> Iterator[Observation]:
    """Yield observations about the newest record of a deleted topic, and about its current producers."""
    last_write_ms = None if isinstance(last_write, Fault) else last_write
    figures: dict[str, JsonValue] = {
        "last_write_ms": last_write_ms,
        "producers": None if isinstance(producers, Fault) else producers,
    }
    time = "" if last_write_ms is None else format_record_time(last_write_ms)
    last = f"The newest record is timestamped {time}." if time else ""
    if isinstance(producers, Fault):
        yield build_unknown(resource, None, "which producers write to the topic", producers, right=READ)
    elif producers:
        wrote = f"{format_count(producers, 'producer')} wrote to the topic within the last hour."
        text = f"{wrote} {last}".strip()
        yield Observation(resource, "writers", ObservationLevel.EFFECT, text, None, figures)
        return
    if last:
        yield Observation(resource, "writers", ObservationLevel.INFO, last, None, figures)


def format_record_time(at_ms: int) -> str:
    """Format a timestamp of a record. Producers can set any number, such as microseconds."""
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms, which is not a date"


def build_hidden_groups(resource: str, path: str | None) -> Observation:
    """Return the observation that there may be groups that the principal does not see."""
    text = f"Other groups may read the topic: {HIDDEN_GROUPS}."
    return Observation(resource, "hidden-groups", ObservationLevel.UNKNOWN, text, path)


def build_unknown_groups(resource: str, path: str | None, count: int) -> Observation:
    """Return the observation that kdeclare does not know which topics some groups read."""
    groups = format_count(count, "other group")
    text = f"{groups} may read the topic: kdeclare cannot determine the topics of {UNKNOWN_READERS}."
    return Observation(resource, "hidden-groups", ObservationLevel.UNKNOWN, text, path, {"groups": count})


def build_unknown(
    resource: str, path: str | None, what: str, reason: Fault | str, *, right: str = DESCRIBE
) -> Observation:
    """Return the observation about something that could not be determined.

    what: a clause, such as ``which records are deleted``. right: the permission on the topic that the request
        needs.
    """
    text = f"kdeclare could not determine {what}: {format_reason(reason, right=right)}."
    return Observation(resource, "not-determined", ObservationLevel.UNKNOWN, text, path)


def format_reason(reason: Fault | str, *, right: str = DESCRIBE) -> str:
    """Return the reason why something is unknown, without a period. If a permission is missing, name it.

    right: the permission on the topic that the request needs.
    """
    if isinstance(reason, Fault):
        missing = _MISSING_RIGHTS.get(reason.error, "").format(right=right)
        reason = f"kdeclare lacks {missing}" if missing else str(reason)
    return reason.rstrip(".")


def format_bounds(bounds: Bounds) -> str:
    """Format a number with known bounds: ``5``, ``3 to 5`` or ``up to 5``."""
    if bounds.is_exact:
        return f"{bounds.most:,}"
    return f"{bounds.least:,} to {bounds.most:,}" if bounds.least else f"up to {bounds.most:,}"


def _format_amount(records: int, size: int | None) -> str:
    size_text = "" if size is None else f" ({format_size(size)})"
    return f"{format_count(records, 'record')}{size_text}"
