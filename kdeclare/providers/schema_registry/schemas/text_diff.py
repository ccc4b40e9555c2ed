"""Compare two schemas line by line, for reports that show them side by side."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.schema_registry.client.port import SchemaContent
from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.problems import SchemaError


class LineChange(StrEnum):
    """How a row of a text diff differs."""

    EQUAL = "equal"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of one of the texts. number: starts at 1, in the common layout."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A row with the lines of both texts. ``before`` or ``after`` is None if its text has no line there.

    skipped_count: the number of equal lines that a row with the change ``skipped`` replaces.
    """

    change: LineChange
    before: DiffLine | None = None
    after: DiffLine | None = None
    skipped_count: int = 0


@dataclass(frozen=True, slots=True)
class SchemaTextDiff:
    """The rows of two schemas side by side. Without a difference, all rows are equal."""

    rows: tuple[DiffRow, ...]

    @property
    def has_changes(self) -> bool:
        """Whether any line differs."""
        return any(row.change not in (LineChange.EQUAL, LineChange.SKIPPED) for row in self.rows)

    def shorten(self, context: int = 3) -> "SchemaTextDiff":
        """Return the diff with at most ``context`` equal lines before and after each difference."""
        differing = [index for index, row in enumerate(self.rows) if row.change is not LineChange.EQUAL]
        kept = {near for index in differing for near in range(index - context, index + context + 1)}
        return SchemaTextDiff(tuple(_skip_rows(self.rows, kept)))


def diff_schema_texts(before: SchemaContent | None, after: SchemaContent | None) -> SchemaTextDiff:
    """Compare two schemas line by line in the common layout. None stands for an absent schema.

    The layout of a text that is not a valid schema is left as it is.
    """
    first = _list_lines(before)
    second = _list_lines(after)
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    rows: list[DiffRow] = []
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        for offset in range(max(old_end - old_start, new_end - new_start)):
            old, new = old_start + offset, new_start + offset
            rows.append(
                _build_row(
                    DiffLine(old + 1, first[old]) if old < old_end else None,
                    DiffLine(new + 1, second[new]) if new < new_end else None,
                )
            )
    return SchemaTextDiff(tuple(rows))


def _list_lines(content: SchemaContent | None) -> tuple[str, ...]:
    if content is None:
        return ()
    try:
        return format_layout(parse_schema(content))
    except SchemaError:
        return tuple(content.text.splitlines())


def _build_row(before: DiffLine | None, after: DiffLine | None) -> DiffRow:
    if before is None:
        return DiffRow(LineChange.ADDED, None, after)
    if after is None:
        return DiffRow(LineChange.REMOVED, before)
    return DiffRow(LineChange.EQUAL if before.text == after.text else LineChange.CHANGED, before, after)


def _skip_rows(rows: tuple[DiffRow, ...], kept: set[int]) -> Iterator[DiffRow]:
    skipped_count = 0
    for index, row in enumerate(rows):
        if index not in kept:
            skipped_count += 1
            continue
        if skipped_count:
            yield DiffRow(LineChange.SKIPPED, skipped_count=skipped_count)
            skipped_count = 0
        yield row
    if skipped_count:
        yield DiffRow(LineChange.SKIPPED, skipped_count=skipped_count)
