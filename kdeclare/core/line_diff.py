"""The result of comparing two texts line by line, for reports that show the texts side by side."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby

from kdeclare.core.frozen_dataclass import dataclass

CONTEXT = 3
"""The default number of equal lines that reports show before and after each difference."""


class LineChange(StrEnum):
    """The kind of difference in a row of a line diff."""

    EQUAL = "equal"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of one of the two compared texts. number: the number of the line, from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A row with a line of each text. ``before`` or ``after`` is None if that text has no line in this row.

    skipped_count: the number of equal lines that a row with the change ``skipped`` replaces.
    """

    change: LineChange
    before: DiffLine | None = None
    after: DiffLine | None = None
    skipped_count: int = 0


@dataclass(frozen=True, slots=True)
class LineDiff:
    """Two texts side by side, in rows. If the texts are equal, each row has the change ``equal``."""

    rows: tuple[DiffRow, ...]

    @property
    def has_changes(self) -> bool:
        """Whether any line differs."""
        return any(row.change not in (LineChange.EQUAL, LineChange.SKIPPED) for row in self.rows)

    def split(self, context: int = CONTEXT) -> Iterator[tuple[bool, Sequence[DiffRow]]]:
        """Yield all rows in blocks, each with a flag: True for equal lines that are far from any difference.

        context: how many equal lines before and after a difference count as near the difference.
        """
        differing = [index for index, row in enumerate(self.rows) if row.change is not LineChange.EQUAL]
        near = {index for row in differing for index in range(row - context, row + context + 1)}
        for is_near, indexes in groupby(range(len(self.rows)), near.__contains__):
            yield not is_near, [self.rows[index] for index in indexes]

    def shorten(self, context: int = CONTEXT) -> "LineDiff":
        """Return the diff with at most ``context`` equal lines before and after each difference.

        Two or more other equal lines in succession are replaced by a row with the change ``skipped``.
        """
        rows: list[DiffRow] = []
        for is_far, block in self.split(context):
            rows += (
                [DiffRow(LineChange.SKIPPED, skipped_count=len(block))]
                if is_far and len(block) > 1
                else block
            )
        return LineDiff(tuple(rows))
