"""Render the sections that follow the changes in a plan, as text, Markdown and HTML.

Providers add most of these sections.
"""

from html import escape

from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.unmanaged import UnmanagedListing
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.core.provider.provider_queries import describe_plan
from kdeclare.report.elements.markdown_escape import escape_prose
from kdeclare.report.elements.terminal import Style
from kdeclare.report.elements.values import format_count, sanitize_for_terminal
from kdeclare.report.plan.text_comparison import ComparisonWriter

_UNMANAGED_TITLE = "Unmanaged resources (neither declared nor owned, left unchanged)"
_IMPORT_HINT = "To manage them, run kdeclare import --unmanaged, which writes their manifests."
MAX_PAGE_LINES = 500
"""The maximum number of lines in a section of an HTML page. For the others, only the number is shown."""

_MAX_LINE_LENGTH = 4_000
"""The maximum length of a line in Markdown."""


def list_sections(plan: Plan) -> tuple[PlanSection, ...]:
    """Return the sections of providers, and the list of unmanaged objects if it was requested."""
    unmanaged = () if plan.unmanaged is None else (_build_unmanaged_section(plan.unmanaged),)
    return (*describe_plan(plan), *unmanaged)


def _build_unmanaged_section(unmanaged: UnmanagedListing) -> PlanSection:
    names = [
        f"{item.kind}/{item.name}" + (f" ({item.count:,} objects)" if item.count > 1 else "")
        for item in unmanaged.objects
    ]
    lines = [*map(SectionLine, names or ["None."])]
    lines += [SectionLine(f"Not read: {reason}", is_secondary=True) for reason in unmanaged.unread]
    lines += [SectionLine(_IMPORT_HINT, is_secondary=True)] if names else []
    return PlanSection(_UNMANAGED_TITLE, tuple(lines), is_for_reviews=True)


def render_section_text(section: PlanSection, style: Style) -> str:
    """Render a section as text: the title, then the lines."""
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


def render_page_sections(plan: Plan) -> str:
    """Render the sections with ``is_for_reviews`` as HTML. The HTML needs no scripts."""
    writer = ComparisonWriter()
    sections = (section for section in list_sections(plan) if section.is_for_reviews)
    return "".join(_render_page_section(section, number, writer) for number, section in enumerate(sections))


def _render_page_section(section: PlanSection, number: int, writer: ComparisonWriter) -> str:
    id_ = f"section-{number}"
    items = [_render_page_line(line) for line in section.lines[:MAX_PAGE_LINES]]
    left = len(section.lines) - MAX_PAGE_LINES
    if left > 0:
        note = f"and {format_count(left, 'more line')} (see the text output of the plan)"
        items.append(f'<li class="dim">{note}</li>')
    return (
        f'<section class="panel" aria-labelledby="{id_}">\n'
        f'<h2 id="{id_}">{escape(sanitize_for_terminal(section.title))}</h2>\n'
        f'<ul class="lines" tabindex="0" aria-labelledby="{id_}">\n{"".join(items)}</ul>\n'
        f"{writer.render_all(section.comparisons)}</section>\n"
    )


def _render_page_line(line: SectionLine) -> str:
    name = {"+": "gained", "-": "lost"}.get(line.sign, "head" if line.is_secondary else "")
    attribute = f' class="{name}"' if name else ""
    return f"<li{attribute}>{line.sign or ' '} {escape(sanitize_for_terminal(line.text))}</li>\n"
