"""Render the sections in which providers describe a plan as a whole, for text, Markdown and HTML."""

from collections.abc import Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.core.provider.registry import describe_plan
from kdeclare.report.elements.markdown_escape import escape_prose
from kdeclare.report.elements.terminal import Style
from kdeclare.report.elements.values import sanitize_for_terminal

MAX_PAGE_LINES = 500
"""The maximum number of lines of a section on an HTML page. All other lines are counted."""

_MAX_LINE_LENGTH = 4_000
"""The maximum length of a line in Markdown."""


def render_section_text(section: PlanSection, style: Style) -> str:
    """Render the title and the lines as text."""
    lines = [style.bold(f"{sanitize_for_terminal(section.title)}:")]
    for line in section.lines:
        paint = {"+": style.green, "-": style.red}.get(line.sign, style.dim if line.is_secondary else str)
        lines.append(paint(f"  {_format_line(line)}"))
    return "".join(f"{line}\n" for line in lines)


def _format_line(line: SectionLine) -> str:
    text = sanitize_for_terminal(line.text)
    return f"{line.sign} {text}" if line.sign else text


def render_markdown_line(line: SectionLine) -> str:
    """Render a line as an item of a list in Markdown."""
    sign = f"**{line.sign}** " if line.sign else ""
    return f"- {sign}{escape_prose(line.text, _MAX_LINE_LENGTH)}\n"


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section on an HTML page. lines: pairs of a sign and a text. left: the number of omitted lines."""

    title: str
    lines: tuple[tuple[str, str], ...]
    left: int


def build_page_sections(operations: Sequence[Operation]) -> list[PageSection]:
    """Build the data of the sections that are for reviews."""
    return [
        PageSection(
            sanitize_for_terminal(section.title),
            tuple((line.sign, sanitize_for_terminal(line.text)) for line in section.lines[:MAX_PAGE_LINES]),
            max(0, len(section.lines) - MAX_PAGE_LINES),
        )
        for section in describe_plan(operations)
        if section.is_for_reviews
    ]
