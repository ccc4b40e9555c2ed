"""Tables of clusters: names to the left, numbers to the right, nothing for a zero."""

from collections.abc import Iterator, Sequence

from kdeclare.report.elements.terminal import PLAIN, Style

Cell = str | int


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]], style: Style = PLAIN) -> Iterator[str]:
    """The lines of a table, its header first. Columns of numbers without any but zeros are left out."""
    kept = [i for i, _ in enumerate(header) if any(row[i] != 0 for row in rows)]
    lines = [[_text(row[i]) for i in kept] for row in rows]
    names = [header[i] for i in kept]
    widths = [max(len(line[i]) for line in (names, *lines)) for i in range(len(kept))]
    right = [all(isinstance(row[i], int) for row in rows) for i in kept]
    yield style.dim(_line(names, widths, right))
    for line in lines:
        yield _line(line, widths, right)


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell:,}" if cell else ""


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = zip(cells, widths, right, strict=True)
    return "  ".join(f"{cell:>{width}}" if end else f"{cell:<{width}}" for cell, width, end in parts).rstrip()
