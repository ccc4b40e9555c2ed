"""Render the changes of a plan for browsers without JavaScript."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Change
from kdeclare.report.elements.values import (
    format_count,
    join_nonempty,
    sanitize_for_terminal,
    strip_configs_prefix,
)
from kdeclare.report.plan.page_notes import PageNote
from kdeclare.report.plan.plan_page_data import ACTION_LABELS, format_field_sides, order_changes
from kdeclare.report.plan.risks import list_risk_names
from kdeclare.report.run.views import RunStep

MAX_STATIC_CHANGES = 1_000
MAX_STATIC_RISKS = 100
"""The maximum number of risks that are shown without JavaScript.

For the others, only their number is shown.
"""

_MAX_FIELDS = 3


def render_static_page(
    plan: Plan,
    facts: Sequence[tuple[str, str]],
    risks: Sequence[PageNote],
    risks_title: str,
    steps: Sequence[RunStep] = (),
) -> str:
    """Render the overview, the risks and the changes as HTML, with at most three fields for each change.

    steps: the operations of a run. For each change, the page shows how many operations had which result.
    """
    results: dict[str, Counter[str]] = {}
    for step in steps:
        results.setdefault(step.resource, Counter())[step.known_status.value] += 1
    changes = order_changes(plan)
    return (
        f'<dl class="facts">{"".join(map(_render_fact, facts))}</dl>\n'
        f"{_render_risks(risks, risks_title)}"
        '<section class="panel static">\n<h2>Changes</h2>\n<table>\n'
        "<thead><tr><th>Resource</th><th>Action</th><th>Risks</th><th>Fields</th></tr></thead>\n<tbody>\n"
        f"{''.join(_render_row(change, results) for change in changes[:MAX_STATIC_CHANGES])}"
        f"</tbody>\n</table>\n{_render_rest(len(changes) - MAX_STATIC_CHANGES)}</section>\n"
    )


def _render_fact(fact: tuple[str, str]) -> str:
    name, text = fact
    return f"<div><dt>{escape(name)}</dt> <dd>{escape(text)}</dd></div>"


def _render_risks(risks: Sequence[PageNote], title: str) -> str:
    if not risks:
        return ""
    items = "".join(map(_render_risk, risks[:MAX_STATIC_RISKS]))
    return (
        f'<section class="panel alarm said static">\n<h2>{escape(title)}</h2>\n'
        f'<ul id="static-risks">\n{items}</ul>\n{_render_rest(len(risks) - MAX_STATIC_RISKS)}</section>\n'
    )


def _render_risk(risk: PageNote) -> str:
    subject = risk.title if risk.resource is None else f"{risk.title}: {risk.resource}"
    lines = "".join(f'<span class="line">{escape(line)}</span>' for line in risk.lines)
    tags = " ".join(f'<span class="tag">{escape(tag)}</span>' for tag in (risk.tag, *risk.more))
    return f'<li><span class="risks">{tags}</span><span>{escape(subject)}{lines}</span></li>\n'


def _render_row(change: Change, results: Mapping[str, Counter[str]]) -> str:
    counts: Mapping[str, int] = results.get(str(change.id), Counter())
    action = join_nonempty(
        [ACTION_LABELS[change.action][0], *(f"{count} {status}" for status, count in counts.items())]
    )
    risks = "blocked" if change.blocked else ", ".join(list_risk_names(change))
    fields = [_format_field(change, number) for number in range(min(len(change.fields), _MAX_FIELDS))]
    left = len(change.fields) - _MAX_FIELDS
    values = "; ".join([*fields, *([f"{left:,} more"] if left > 0 else [])])
    cells = (sanitize_for_terminal(str(change.id)), action, risks, values)
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n"


def _format_field(change: Change, number: int) -> str:
    field = change.fields[number]
    sides = [side for side in format_field_sides(change, field) if side is not None]
    return f"{sanitize_for_terminal(strip_configs_prefix(field.path))} {' → '.join(sides)}"


def _render_rest(left: int) -> str:
    if left <= 0:
        return ""
    return f'<p class="dim">and {format_count(left, "more row")}, which need JavaScript</p>\n'
