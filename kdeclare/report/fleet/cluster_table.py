"""Tables of clusters. Numbers are right-aligned, and zeros are blank."""

from collections.abc import Iterator, Sequence

from kdeclare.report.elements.terminal import PLAIN, Style

ClusterCell = str | int


def render_cluster_table(
    header: Sequence[str], rows: Sequence[Sequence[ClusterCell]], style: Style = PLAIN
) -> Iterator[str]:
    """Render the lines of a table, header first. Columns that contain only zeros are omitted."""
    visible = [i for i, _ in enumerate(header) if any(row[i] != 0 for row in rows)]
    lines = [[_format_cell(row[i]) for i in visible] for row in rows]
    names = [header[i] for i in visible]
    widths = [max(len(line[i]) for line in (names, *lines)) for i in range(len(visible))]
    align_right = [all(isinstance(row[i], int) for row in rows) for i in visible]
    yield style.dim(_format_line(names, widths, align_right))
    for line in lines:
        yield _format_line(line, widths, align_right)


def _format_cell(cell: ClusterCell) -> str:
    return cell if isinstance(cell, str) else f"{cell:,}" if cell else ""


def _format_line(cells: Sequence[str], widths: Sequence[int], align_right: Sequence[bool]) -> str:
    columns = zip(cells, widths, align_right, strict=True)
    return "  ".join(
        f"{cell:>{width}}" if end else f"{cell:<{width}}" for cell, width, end in columns
    ).rstrip()
