"""Compare two schemas line by line, for reports that show them side by side."""

from collections import deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache, partial

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.schema_registry.client.port import SchemaContent
from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.problems import SchemaError

_MIN_SIMILARITY = 0.6
_MAX_WINDOW = 20
"""How many lines are searched for one that is similar. The comparison of lines is slow."""
_MAX_PAIRS = 10_000
"""The product of the lengths of two blocks up to which similar lines are searched."""


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
    old_lines = [DiffLine(number, text) for number, text in enumerate(first, 1)]
    new_lines = [DiffLine(number, text) for number, text in enumerate(second, 1)]
    rows: list[DiffRow] = []
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        old_block, new_block = old_lines[old_start:old_end], new_lines[new_start:new_end]
        if tag == "equal":
            rows += map(partial(DiffRow, LineChange.EQUAL), old_block, new_block)
        else:
            rows += _pair_lines(old_block, new_block)
    return SchemaTextDiff(tuple(rows))


def _list_lines(content: SchemaContent | None) -> tuple[str, ...]:
    if content is None:
        return ()
    try:
        return format_layout(parse_schema(content))
    except SchemaError:
        return tuple(content.text.splitlines())


def _pair_lines(before: Sequence[DiffLine], after: Sequence[DiffLine]) -> Iterator[DiffRow]:
    """Yield the rows of two blocks that differ. Lines are in one row if they are similar."""
    if len(before) * len(after) > _MAX_PAIRS:
        yield from (DiffRow(LineChange.REMOVED, old) for old in before)
        yield from (DiffRow(LineChange.ADDED, None, new) for new in after)
        return
    remaining = deque(after)
    for index, old in enumerate(before):
        window = list(remaining)[:_MAX_WINDOW]
        position = next((place for place, new in enumerate(window) if _is_similar(old.text, new.text)), None)
        if position is None:
            yield DiffRow(LineChange.REMOVED, old)
            continue
        if any(
            _is_similar(later.text, new.text)
            for new in window[:position]
            for later in before[index + 1 : index + _MAX_WINDOW]
        ):
            yield DiffRow(LineChange.REMOVED, old)  # the lines between would lose their counterparts
            continue
        for _ in range(position):
            yield DiffRow(LineChange.ADDED, None, remaining.popleft())
        new = remaining.popleft()
        yield DiffRow(LineChange.EQUAL if old.text == new.text else LineChange.CHANGED, old, new)
    for new in remaining:
        yield DiffRow(LineChange.ADDED, None, new)


@lru_cache(maxsize=10_000)
def _is_similar(first: str, second: str) -> bool:
    if first == second:
        return True
    first, second = first.strip(), second.strip()
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return matcher.quick_ratio() > _MIN_SIMILARITY and matcher.ratio() > _MIN_SIMILARITY


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
