"""Text for a terminal, with optional colors, and tables that fit the width of the terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """Formats text with colors. If ``on`` is False, the methods return the text unchanged."""

    on: bool = False

    def bold(self, text: str) -> str:
        """Format headlines and names in bold."""
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        """Format secondary information in a dim color."""
        return self._wrap("2", text)

    def red(self, text: str) -> str:
        """Format errors and deletions in red."""
        return self._wrap("31", text)

    def green(self, text: str) -> str:
        """Format created resources and successes in green."""
        return self._wrap("32", text)

    def yellow(self, text: str) -> str:
        """Format changes and warnings in yellow."""
        return self._wrap("33", text)

    def cyan(self, text: str) -> str:
        """Format replica moves and hints in cyan."""
        return self._wrap("36", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


PLAIN = Style(on=False)


_GAP = "  "

ELISION_NOTE = "…: shortened. Use --format json to see everything."
"""The note below a table in which cells are shortened; see `is_table_elided`."""


class StyledCell(NamedTuple):
    """A colored cell of a table."""

    text: str
    paint: Callable[[str], str]


Cell = str | StyledCell
"""A cell of a table. Untrusted text must be sanitized with `values.sanitize_for_terminal`."""


class Elision(Enum):
    """The position at which a long cell is shortened."""

    NEVER = "never"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    right: whether cells are right-aligned, as for numbers.
    elision: where long cells are shortened. The cells of a NEVER column are shortened (at the end) only if
        shortening the other columns is not enough.
    least: the minimum width of a shortened cell in characters.
    """

    title: str
    right: bool = False
    elision: Elision = Elision.NEVER
    least: int = 8


def render_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    width: int | None = None,
    style: Style = PLAIN,
    indent: str = "",
) -> Iterator[str]:
    """Render the lines of a table, header first. Columns that are empty in all rows are omitted.

    width: the width of the terminal in characters; None for no limit. The table can be wider if ``width`` is
        less than 3 characters for each column.
    """
    cell_texts = [[_get_cell_text(cell) for cell in row] for row in rows]
    widths = _measure_columns(columns, cell_texts)
    if width is not None:
        _fit_columns(widths, columns, width - len(indent))
    layout = [(i, columns[i], room) for i, room in widths.items()]
    titles = _GAP.join(_align_cell(column.title, column.title, column, room) for _, column, room in layout)
    yield indent + style.dim(titles.rstrip())
    for row, row_texts in zip(rows, cell_texts, strict=True):
        cells = (_align_cell(row[i], row_texts[i], column, room) for i, column, room in layout)
        yield (indent + _GAP.join(cells)).rstrip()


def is_table_elided(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None) -> bool:
    """Whether cells must be shortened so that the table fits the width of the terminal."""
    return (
        width is not None
        and _compute_table_width(
            _measure_columns(columns, [[_get_cell_text(cell) for cell in row] for row in rows])
        )
        > width
    )


def measure_width(text: str) -> int:
    """Return the width of printable text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(map(_measure_character, text))


def elide(text: str, width: int, elision: Elision) -> str:
    """Shorten text to ``width`` terminal columns. ``…`` replaces the removed characters."""
    if measure_width(text) <= width:
        return text
    kept_width = width - 1
    tail_width = kept_width // 2 if elision is Elision.MIDDLE else 0
    end = _cut_to_width(text[::-1], tail_width)[::-1] if tail_width else ""
    return f"{_cut_to_width(text, kept_width - tail_width)}…{end}" if kept_width >= 0 else ""


def _measure_columns(columns: Sequence[Column], cell_texts: Sequence[Sequence[str]]) -> dict[int, int]:
    """For each visible column, return the width that shows the title and all cells in full."""
    widths = [max((measure_width(row[i]) for row in cell_texts), default=0) for i in range(len(columns))]
    visible = [i for i, widest in enumerate(widths) if widest or not cell_texts]
    return {i: max(widths[i], measure_width(columns[i].title)) for i in visible}


def _fit_columns(widths: dict[int, int], columns: Sequence[Column], width: int) -> None:
    """Narrow the columns until the table fits, or until all columns have their minimum width."""
    _narrow_columns(
        widths, {i: columns[i].least for i in widths if columns[i].elision is not Elision.NEVER}, width
    )
    _narrow_columns(widths, dict.fromkeys(widths, 1), width)


def _narrow_columns(widths: dict[int, int], min_widths: Mapping[int, int], width: int) -> None:
    """Narrow the widest columns first, so that narrow columns are not shortened."""
    while (excess := _compute_table_width(widths) - width) > 0:
        shrinkable = sorted((i for i in min_widths if widths[i] > min_widths[i]), key=lambda i: -widths[i])
        if not shrinkable:
            return
        widest_index, *other_indexes = shrinkable
        next_widest = widths[other_indexes[0]] if other_indexes else 0
        new_width = max(min_widths[widest_index], min(next_widest, widths[widest_index] - 1))
        widths[widest_index] -= min(excess, widths[widest_index] - new_width)


def _compute_table_width(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1)


def _get_cell_text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _align_cell(cell: Cell, text: str, column: Column, width: int) -> str:
    """Shorten and align a cell. The padding has no color."""
    elided_text = elide(text, width, column.elision)
    spaces = " " * (width - measure_width(elided_text))
    if not isinstance(cell, str):
        elided_text = cell.paint(elided_text)
    return spaces + elided_text if column.right else elided_text + spaces


def _cut_to_width(text: str, width: int) -> str:
    """Return the longest prefix of the text that fits ``width``."""
    if text.isascii():
        return text[: max(0, width)]
    for count, char in enumerate(text):
        width -= _measure_character(char)
        if width < 0:
            return text[:count]
    return text


def _measure_character(char: str) -> int:
    import unicodedata  # a large module that hardly any text needs

    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
