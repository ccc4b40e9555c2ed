"""Compute the new offsets of a group, with the rules of Kafka's kafka-consumer-groups tool."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.consumer_group.arguments import LogRange, OffsetChange
from kdeclare.providers.kafka.consumer_group.group import KIND, CommittedOffset, GroupOffsets
from kdeclare.providers.kafka.ids import TopicPartition


class ResetTarget(StrEnum):
    """The position to which a reset moves a group. The values are options of Kafka's tool."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    OFFSET = "to-offset"
    SHIFT = "shift-by"
    DATETIME = "to-datetime"
    DURATION = "by-duration"
    FILE = "from-file"


_BY_TIME = (ResetTarget.DATETIME, ResetTarget.DURATION)


@dataclass(frozen=True, slots=True)
class Reset:
    """A requested reset.

    number: the offset, the number of offsets to shift by, or a time in milliseconds since 1970.
    offsets: the offsets in a file, by group and partition. The group ``""`` means the only selected group.
    """

    target: ResetTarget
    number: int = 0
    offsets: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)

    @property
    def time_ms(self) -> int | None:
        """The time to reset to, in milliseconds since 1970; None if the reset does not depend on a time."""
        return self.number if self.target in _BY_TIME else None


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The offsets of one log.

    at_time: the offset of the first record at or after the requested time, or None if there is no such
        record.
    """

    range: LogRange
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class ResetResult:
    """The changes to the offsets of one group.

    changes: the partitions whose offset changes.
    offsets: the offset of every partition after the reset, including unchanged offsets.
    """

    changes: Mapping[TopicPartition, OffsetChange]
    offsets: Mapping[TopicPartition, int]
    diagnostics: tuple[Diagnostic, ...] = ()


def compute_reset(
    group: str,
    reset: Reset,
    partitions: Iterable[TopicPartition],
    committed: GroupOffsets,
    logs: Mapping[TopicPartition, LogOffsets],
) -> ResetResult:
    """Compute the new offset of each partition. Partitions with an error are omitted.

    logs: the logs of all partitions. As in Kafka's tool, an offset outside the log is replaced with the start
        or end offset of the log. --to-current leaves committed offsets unchanged.
    """
    changes: dict[TopicPartition, OffsetChange] = {}
    offsets: dict[TopicPartition, int] = {}
    diagnostics: list[Diagnostic] = []
    for where in partitions:
        before, log = committed.get(where), logs[where]
        requested = _find_requested_offset(group, reset, where, before, log)
        if requested is None:
            diagnostics.append(_report_not_committed(group, where))
            continue
        offset = requested
        if reset.target is not ResetTarget.CURRENT or before is None:
            offset = min(max(requested, log.range.start), log.range.end)
        if offset != requested:
            diagnostics.append(_warn_outside_log(group, where, requested, offset, log))
        if reset.time_ms is not None and log.at_time is None:
            diagnostics.append(_warn_no_record(group, where, reset.time_ms, offset))
        offsets[where] = offset
        if before is None or before.offset != offset:
            changes[where] = OffsetChange(CommittedOffset(offset), before, log.range)
    return ResetResult(changes, offsets, tuple(diagnostics))


def _find_requested_offset(
    group: str, reset: Reset, where: TopicPartition, before: CommittedOffset | None, log: LogOffsets
) -> int | None:
    """Return the requested offset, which can be outside the log.

    Return None if a committed offset is missing.
    """
    match reset.target:
        case ResetTarget.EARLIEST:
            return log.range.start
        case ResetTarget.LATEST:
            return log.range.end
        case ResetTarget.OFFSET:
            return reset.number
        case ResetTarget.FILE:
            own_offsets = reset.offsets.get(group) or reset.offsets.get("", {})
            return own_offsets[where]
        case ResetTarget.SHIFT:
            return None if before is None else before.offset + reset.number
        case ResetTarget.CURRENT:
            return log.range.end if before is None else before.offset
        case ResetTarget.DATETIME | ResetTarget.DURATION:
            return log.range.end if log.at_time is None else log.at_time


def _report_not_committed(group: str, where: TopicPartition) -> Diagnostic:
    return error(
        "no-committed-offset",
        "No committed offset",
        f"Group '{group}' has no committed offset for {where}, so the offset cannot be shifted.",
        hint="Reset this partition with another option first, such as --to-earliest.",
        resource=str(ResourceId(KIND, group)),
        subject=str(where),
    )


def _warn_outside_log(
    group: str, where: TopicPartition, requested: int, offset: int, log: LogOffsets
) -> Diagnostic:
    return warning(
        "offset-outside-log",
        "Offset outside the log",
        f"Offset {requested} of {where} is outside the log, which has the offsets {log.range.start} to "
        f"{log.range.end}. kdeclare uses offset {offset} instead.",
        resource=str(ResourceId(KIND, group)),
        subject=str(where),
    )


def _warn_no_record(group: str, where: TopicPartition, time_ms: int, offset: int) -> Diagnostic:
    moment = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return warning(
        "no-record-at-time",
        "No record at this time or later",
        f"{where} has no record with a timestamp of {moment.replace('+00:00', 'Z')} or later. kdeclare uses "
        f"offset {offset}, the end of the log.",
        resource=str(ResourceId(KIND, group)),
        subject=str(where),
    )
