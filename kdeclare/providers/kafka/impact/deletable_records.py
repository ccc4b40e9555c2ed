"""Compute which records Kafka deletes after a change to the retention limits of a topic.

Kafka deletes whole segments, the oldest first, and clients cannot see segments. Therefore, the results are
bounds. The rules are those of `UnifiedLog.deleteRetentionMsBreachedSegments`,
`deleteRetentionSizeBreachedSegments` and `LogSegment.shouldRoll` of Apache Kafka 4.3.
"""

from dataclasses import replace
from typing import NamedTuple

from kdeclare.core.frozen_dataclass import dataclass

NO_RECORD = -1
"""The offset that ListOffsets returns if no record is recent enough."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """The configs of a topic that determine which records Kafka deletes.

    deletes: whether ``cleanup.policy`` contains ``delete``. Otherwise, the limits have no effect.
    retention_ms, retention_bytes: None means unlimited. The size limit applies to each partition.
    segment_ms, segment_bytes: the largest time span and size of a segment.
    is_compacted: whether Kafka compacts the topic, or did so before. Compaction merges segments, so that a
        segment can cover any time span.
    """

    deletes: bool
    retention_ms: int | None
    retention_bytes: int | None
    segment_ms: int
    segment_bytes: int
    is_compacted: bool = False


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The log of one partition.

    start, end: the first offset, and the offset of the next record.
    size: the size in bytes; None if unknown.
    first_within: the first offset with a timestamp within ``retention.ms``, or `NO_RECORD`.
    first_near: the first offset with a timestamp within ``retention.ms`` plus twice ``segment.ms``, or
        `NO_RECORD`.
    kept_since_ms: the timestamp of the record at ``first_within``; None if there is no such record, or if no
        time limit was given.
    """

    start: int
    end: int
    size: int | None = None
    first_within: int = 0
    first_near: int = 0
    kept_since_ms: int | None = None

    @property
    def count(self) -> int:
        """The number of offsets, which is the largest possible number of records."""
        return max(0, self.end - self.start)

    def without_size(self) -> "PartitionLog":
        """Return a copy of the log whose size is unknown."""
        return replace(self, size=None)


class Bounds(NamedTuple):
    """The lower and the upper bound of a number."""

    least: int
    most: int

    @property
    def is_exact(self) -> bool:
        """Whether the number is known exactly, because the two bounds are equal."""
        return self.least == self.most


NONE_DELETED = Bounds(0, 0)


def compute_deletable_records(log: PartitionLog, limits: LogLimits) -> Bounds:
    """Return how many records Kafka deletes from a partition under the given limits, the oldest first.

    The result counts offsets. A log that was compacted or that contains transactions has fewer records than
    offsets. Records that become too old only later are not counted.
    """
    if not limits.deletes or not log.count:
        return NONE_DELETED
    by_time, by_size = _bound_by_time(log, limits), _bound_by_size(log, limits)
    return Bounds(max(by_time.least, by_size.least), max(by_time.most, by_size.most))


def _bound_by_time(log: PartitionLog, limits: LogLimits) -> Bounds:
    """Return how many records Kafka deletes from a partition because of ``retention.ms``.

    Kafka deletes a segment if its largest timestamp, and that of each earlier segment, is too old. The
    segment with the first record that is recent enough stays. Kafka begins a new segment at the latest when a
    batch is more than ``segment.ms`` newer than the first batch of the current segment. The records of that
    first batch can be older than the batch, but by much less than another ``segment.ms``.

    In a compacted log, `NO_RECORD` does not prove that all records are too old. Brokers search only the first
    segment that can contain a recent record. If a segment is empty, they use the modification time of its
    file.
    """
    if not limits.deletes or limits.retention_ms is None:
        return NONE_DELETED
    if log.first_within == NO_RECORD:
        return Bounds(0 if limits.is_compacted else log.count, log.count)
    most = max(0, log.first_within - log.start)
    least = max(0, log.first_near - log.start)
    is_known = log.first_near != NO_RECORD and not limits.is_compacted
    return Bounds(min(least, most) if is_known else 0, most)


def _bound_by_size(log: PartitionLog, limits: LogLimits) -> Bounds:
    """Return how many records Kafka deletes from a partition because of ``retention.bytes``.

    Kafka deletes segments as long as the remaining segments are at least as large as ``retention.bytes``.
    Records can have very different sizes, so the number of deleted records is known only if all or none are
    deleted.
    """
    if not limits.deletes or limits.retention_bytes is None:
        return NONE_DELETED
    if log.size is None:
        return Bounds(0, log.count)
    excess = _compute_excess(log, limits)
    return Bounds(log.count if excess >= log.size else 0, log.count) if excess else NONE_DELETED


def _compute_excess(log: PartitionLog, limits: LogLimits) -> int:
    """Return by how many bytes a partition exceeds ``retention.bytes``."""
    if not limits.deletes or limits.retention_bytes is None or log.size is None:
        return 0
    return max(0, log.size - limits.retention_bytes)


def compute_deletable_bytes(log: PartitionLog, limits: LogLimits) -> Bounds | None:
    """Return how many bytes Kafka deletes from a partition; None if the size of the partition is unknown."""
    if log.size is None:
        return None
    records = compute_deletable_records(log, limits)
    if log.count and records.least == log.count:
        return Bounds(log.size, log.size)
    excess = _compute_excess(log, limits)
    # Kafka applies the size limit first, and then the time limit to the rest. A segment with a recent
    # timestamp that is deleted because of the size limit can be followed by older segments.
    can_expire = _bound_by_time(log, limits).most > 0 or (excess > 0 and limits.retention_ms is not None)
    return Bounds(max(0, excess - limits.segment_bytes), log.size if can_expire else excess)


def compute_probable_bytes(log: PartitionLog, limits: LogLimits) -> int | None:
    """Estimate how many bytes Kafka deletes if all records have the same size; None if unknown."""
    bounds = compute_deletable_bytes(log, limits)
    if log.size is None or bounds is None:
        return None
    expired = _bound_by_time(log, limits).most
    share = log.size * expired // log.count if log.count else 0
    return min(bounds.most, max(bounds.least, _compute_excess(log, limits), share))


def count_unread(log: PartitionLog, deleted: int, committed: int | None) -> int:
    """Return how many of a partition's deleted records have not been read by a group.

    deleted: the number of deleted records. They are the oldest records of the partition.
    committed: the offset that the group reads next. None means that the group has read nothing. An offset
        beyond the end of the log is invalid, so consumers may read the whole log again.
    """
    is_valid = committed is not None and committed <= log.end
    position = max(log.start, committed) if committed is not None and is_valid else log.start
    return max(0, log.start + deleted - position)
