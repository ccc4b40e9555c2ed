"""Text for a terminal: colours or none, and tables no wider than the window."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from kdeclare.core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """How text is marked. Off, every method gives back what it got."""

    on: bool = False

    def bold(self, text: str) -> str:
        """Headlines and names."""
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        """What is there if one looks for it."""
        return self._wrap("2", text)

    def red(self, text: str) -> str:
        """Errors and deletions."""
        return self._wrap("31", text)

    def green(self, text: str) -> str:
        """Creations and success."""
        return self._wrap("32", text)

    def yellow(self, text: str) -> str:
        """Changes and warnings."""
        return self._wrap("33", text)

    def cyan(self, text: str) -> str:
        """Moves and hints."""
        return self._wrap("36", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


PLAIN = Style(on=False)


_GAP = "  "

SHORTENED = "…: shortened to fit the terminal; --format json has it whole."
"""What to say below a table that `is_cut`."""


class Painted(NamedTuple):
    """A cell in a colour."""

    text: str
    paint: Callable[[str], str]


Cell = str | Painted
"""Printable text; what comes from others goes through `values.clean` before."""


class Cut(Enum):
    """Where a cell that is too long loses characters."""

    NEVER = "never"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    right: its cells stand to the right, as numbers do.
    cut: where its cells are elided; in a terminal too narrow for all else, those of NEVER at the end.
    least: how many characters of an elided cell are still worth reading.
    """

    title: str
    right: bool = False
    cut: Cut = Cut.NEVER
    least: int = 8


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    width: int | None = None,
    style: Style = PLAIN,
    indent: str = "",
) -> Iterator[str]:
    """The lines of a table, its header first. Columns that are empty in all rows are left out.

    width: columns of the terminal, None for no bound. Below three for each column it cannot be kept.
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    wanted = _wanted(columns, texts)
    if width is not None:
        _fit(wanted, columns, width - len(indent))
    shape = [(i, columns[i], room) for i, room in wanted.items()]
    titles = _GAP.join(_placed(column.title, column.title, column, room) for _, column, room in shape)
    yield indent + style.dim(titles.rstrip())
    for row, plain in zip(rows, texts, strict=True):
        cells = (_placed(row[i], plain[i], column, room) for i, column, room in shape)
        yield (indent + _GAP.join(cells)).rstrip()


def is_cut(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None) -> bool:
    """Whether a table has to leave something out to be no wider than that."""
    return (
        width is not None
        and _taken(_wanted(columns, [[_text(cell) for cell in row] for row in rows])) > width
    )


def width_of(text: str) -> int:
    """How many columns of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def elided(text: str, room: int, cut: Cut) -> str:
    """The text in ``room`` columns of a terminal; what was taken out of it is marked."""
    if width_of(text) <= room:
        return text
    kept = room - 1
    tail = kept // 2 if cut is Cut.MIDDLE else 0
    end = _within(text[::-1], tail)[::-1] if tail else ""
    return f"{_within(text, kept - tail)}…{end}" if kept >= 0 else ""


def _wanted(columns: Sequence[Column], texts: Sequence[Sequence[str]]) -> dict[int, int]:
    """The columns that there are, each as wide as it must be to show everything."""
    widths = [max((width_of(row[i]) for row in texts), default=0) for i in range(len(columns))]
    kept = [i for i, widest in enumerate(widths) if widest or not texts]
    return {i: max(widths[i], width_of(columns[i].title)) for i in kept}


def _fit(widths: dict[int, int], columns: Sequence[Column], room: int) -> None:
    """Make columns narrower until they fit or nothing more can be done."""
    _narrow(widths, {i: columns[i].least for i in widths if columns[i].cut is not Cut.NEVER}, room)
    _narrow(widths, dict.fromkeys(widths, 1), room)


def _narrow(widths: dict[int, int], least: Mapping[int, int], room: int) -> None:
    """Take from the widest of some columns first, so that short cells stay whole."""
    while (over := _taken(widths) - room) > 0:
        able = sorted((i for i in least if widths[i] > least[i]), key=lambda i: -widths[i])
        if not able:
            return
        first, *others = able
        next_widest = widths[others[0]] if others else 0
        to = max(least[first], min(next_widest, widths[first] - 1))
        widths[first] -= min(over, widths[first] - to)


def _taken(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1)


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _placed(cell: Cell, text: str, column: Column, room: int) -> str:
    """The cell in its column; its colour does not reach as far as its spaces."""
    shown = elided(text, room, column.cut)
    spaces = " " * (room - width_of(shown))
    if not isinstance(cell, str):
        shown = cell.paint(shown)
    return spaces + shown if column.right else shown + spaces


def _within(text: str, room: int) -> str:
    """As much of the beginning as fits."""
    if text.isascii():
        return text[: max(0, room)]
    for count, char in enumerate(text):
        room -= _columns(char)
        if room < 0:
            return text[:count]
    return text


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
