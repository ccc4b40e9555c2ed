"""The arguments of operations on groups."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.operations.arguments import PartitionName

Offset = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class LogRange(Arguments):
    """The offsets of a log when the plan was made: its first offset, and the offset of the next record."""

    start: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class OffsetChange(Arguments):
    """The change to the committed offset of one partition.

    after: the new offset, or None to delete the committed offset.
    before: the committed offset when the plan was made, which a rollback restores. None means that there was
        no committed offset.
    log: the offsets of the log, or None if they are unknown. They are used only to count records.
    """

    after: CommittedOffset | None
    before: CommittedOffset | None
    log: Annotated[LogRange | None, OMIT_NONE] = None

    def invert(self) -> "OffsetChange":
        """Return the opposite change, which restores the earlier committed offset."""
        return OffsetChange(self.before, self.after, self.log)

    def count_skipped(self) -> int | None:
        """Return the number of records that the group skips.

        The number is negative if the group reads records again. Only offsets that the log contains are
        counted. Return None if the partition has no committed offset before or after the change.
        """
        if self.after is None or self.before is None:
            return None
        return self._clamp(self.after.offset) - self._clamp(self.before.offset)

    def _clamp(self, offset: int) -> int:
        return offset if self.log is None else min(max(offset, self.log.start), self.log.end)


@dataclass(frozen=True, slots=True)
class AlterOffsetsArgs(Arguments):
    """The changes to the committed offsets of one group."""

    group: str
    partitions: Annotated[Mapping[PartitionName, OffsetChange], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class DeleteGroupArgs(Arguments):
    """A group to delete. offsets: the committed offsets before the deletion, which a rollback restores."""

    group: str
    offsets: Mapping[PartitionName, CommittedOffset]
