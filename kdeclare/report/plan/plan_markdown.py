"""Render a plan in Markdown, for a comment on a pull request on GitHub or GitLab.

The comment lists the risks, then the changes, then the values of the changed fields.
A comment that is too long is truncated: for items that do not fit, only their number is shown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kdeclare.core.diagnostics import STOPS_ON_DENIAL, Diagnostic, sort_diagnostics
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.provider.provider import TextComparison
from kdeclare.core.resources.changes import Action, Change
from kdeclare.engine.planning.plan_document import compute_plan_id
from kdeclare.report.elements.diagnostics_text import (
    find_denial_hint,
    format_policy_counts,
    format_severity_counts,
    get_verdict_label,
)
from kdeclare.report.elements.markdown_escape import escape_code, escape_prose
from kdeclare.report.elements.values import format_count, join_nonempty
from kdeclare.report.outcome import find_denied_fields, plan_outcome
from kdeclare.report.plan.impact import list_other_observations
from kdeclare.report.plan.markdown_items import (
    RenderItem,
    format_omitted_details,
    list_risk_items,
    list_short_risk_items,
    list_verdict_items,
    render_change_row,
    render_details,
    render_diagnostic_item,
    render_observation,
)
from kdeclare.report.plan.plan_sections import list_sections, render_markdown_line
from kdeclare.report.plan.plan_text import (
    ORPHANED_CODE,
    describe_exclusions,
    find_targets,
    format_adoption,
    format_orphan_hint,
)
from kdeclare.report.plan.risks import (
    list_risks,
    sort_by_risk,
)
from kdeclare.report.plan.text_comparison import render_comparison_markdown

MAX_COMMENT_LENGTH = 65_000
"""The maximum length of a comment in characters. GitHub accepts 65,536; CI steps add some characters."""

_MAX_ORPHANS = 20
_MIN_COMPARISON_LENGTH = 1_500
_STOP_SENTENCE = "Some changes are denied. The project stops on denials, so apply makes none of the changes."
_STATUS_SENTENCES = {
    "error": "This plan cannot be applied until the errors are fixed.",
    "denied": "Denied changes are not applied. Apply makes the other changes.",
}


def plan_markdown(plan: Plan, identity: str | None = None) -> str:
    """Render the whole comment, with at most ``MAX_COMMENT_LENGTH`` characters and a final newline.

    identity: the id of a plan that was read from a file. If it is None, the id is computed.
    """
    outcome = plan_outcome(plan)
    header = f"## {escape_prose(outcome.headline)}\n"
    if any(d.code == STOPS_ON_DENIAL for d in plan.diagnostics):
        header += f"\n{_STOP_SENTENCE}\n"
    elif outcome.status in _STATUS_SENTENCES:
        header += f"\n{_STATUS_SENTENCES[outcome.status]}\n"
    footer = _render_footer(plan, identity or compute_plan_id(plan))
    sections: tuple[tuple[Callable[[Plan, int], str], float], ...] = (
        (_render_risks, 0.9),
        (_render_other_impact, 0.3),
        (_render_provider_sections, 0.3),
        (_render_changes, 0.3),
        (_render_policies, 0.3),
        (_render_warnings, 0.4),
        (_render_all_details, 1.0),
    )
    remaining = (
        MAX_COMMENT_LENGTH - len(header) - len(footer) - len(sections) - 1
    )  # and a newline between sections
    rendered = {}
    for section, share in sections:
        rendered[section] = section(plan, int(remaining * share))
        remaining -= len(rendered[section])
    blocks = [
        header,
        rendered[_render_risks],
        rendered[_render_other_impact],
        rendered[_render_provider_sections],
        rendered[_render_changes],
        rendered[_render_policies],
        rendered[_render_all_details],
        rendered[_render_warnings],
        footer,
    ]
    return "\n".join(block for block in blocks if block)


def render_problem_markdown(diagnostics: Iterable[Diagnostic]) -> str:
    """Render the diagnostics of a failed command, with at most ``MAX_COMMENT_LENGTH`` characters."""
    items = sort_diagnostics(diagnostics)
    header = f"## kdeclare failed: {format_severity_counts(items) or 'see below'}.\n"
    rows = [partial(render_diagnostic_item, item) for item in items]
    return f"{header}\n{_render_fitting_items(rows, 'problem', MAX_COMMENT_LENGTH - len(header) - 1)}"


def _render_risks(plan: Plan, max_length: int) -> str:
    """Render all risks, in short form if necessary. If some still do not fit, show how many."""
    for items in (list_risk_items(plan), list_short_risk_items(plan)):
        fitting_items = take_fitting((item() for item in items), max_length - 20)
        if len(fitting_items) == len(items):
            return _render_section("Risks", "".join(fitting_items))
    fitting_items = take_fitting((item() for item in items), max_length - 300)
    omitted_counts = Counter(map(_classify_risk, list_risks(plan)[len(fitting_items) :]))
    counts = join_nonempty(f"{count:,} {what}" for what, count in omitted_counts.items())
    omission_note = f"- … and {format_count(omitted_counts.total(), 'more risk')} (omitted): {counts}\n"
    return _render_section("Risks", "".join([*fitting_items, omission_note]))


def _render_other_impact(plan: Plan, max_length: int) -> str:
    """Render the observations about resources whose changes are not in the list of risks."""
    rows: list[RenderItem] = [partial(_render_impact_row, item) for item in list_other_observations(plan)]
    return _render_section("Impact", _render_fitting_items(rows, "observation", max_length - 20))


def _render_impact_row(observation: Observation) -> str:
    resource = f"{escape_code(observation.resource)}: " if observation.resource else ""
    return f"- {resource}{render_observation(observation)}\n"


def _classify_risk(risk: Diagnostic | Verdict | Change) -> str:
    if isinstance(risk, Diagnostic):
        return risk.severity.value
    if isinstance(risk, Verdict):
        return get_verdict_label(risk)
    return "blocked" if risk.blocked else f"{risk.risk.value} {risk.action.value}"


def _render_provider_sections(plan: Plan, max_length: int) -> str:
    """Render the sections that reviewers should see, such as the combined effect of all operations."""
    sections = [section for section in list_sections(plan) if section.is_for_reviews]
    blocks: list[str] = []
    for section in sections:
        rows: list[RenderItem] = [partial(render_markdown_line, line) for line in section.lines]
        remaining = max_length // len(sections) - len(section.title) - 20
        text = _render_fitting_items(rows, "line", remaining)
        text += _render_comparisons(section.comparisons, remaining - len(text))
        blocks.append(_render_section(section.title, text))
    return "\n".join(blocks)


def _render_comparisons(comparisons: Sequence[TextComparison], max_length: int) -> str:
    """Render the text comparisons that fit, and the number of omitted comparisons.

    The space is divided evenly, but each comparison gets a minimum. As a result, there may be no space left
    for the last comparisons.
    """
    text = ""
    max_length -= 120
    for number, comparison in enumerate(comparisons):
        left = max_length - len(text)
        share = max(left // (len(comparisons) - number), min(_MIN_COMPARISON_LENGTH, left))
        block = render_comparison_markdown(comparison, share)
        if not block:
            omitted = format_count(len(comparisons) - number, "more comparison")
            return f"{text}\n… and {omitted} (omitted). The HTML page of the plan shows them.\n"
        text += f"\n{block}"
    return text


def _render_changes(plan: Plan, max_length: int) -> str:
    changes = _list_active_changes(plan)
    table_header = "|   | Resource | Change | Risk | Fields |\n|---|---|---|---|---|\n"
    denied_fields = find_denied_fields(plan)
    targets = find_targets(plan)
    rows = (
        render_change_row(
            change, plan, denied_fields.get(str(change.id), ()), targets.get(str(change.id), ())
        )
        for change in changes
    )
    return _render_section("Changes", _render_table(table_header, rows, changes, max_length - 20))


def _render_all_details(plan: Plan, max_length: int) -> str:
    changes = [change for change in _list_active_changes(plan) if change.fields]
    denied_fields = find_denied_fields(plan)
    blocks = take_fitting(
        (render_details(c, denied_fields.get(str(c.id), ())) for c in changes), max_length - 200
    )
    text = "\n".join(blocks)
    omitted_count = len(changes) - len(blocks)
    if omitted_count:
        text += (
            f"\n{format_omitted_details(omitted_count)}\n"
            if blocks
            else f"{format_omitted_details(omitted_count)}\n"
        )
    return _render_section("Before and after", text)


def _render_policies(plan: Plan, max_length: int) -> str:
    """Render the policy counts, the policy warnings and the overridden denials."""
    policy_counts = format_policy_counts(plan.verdicts).removeprefix("Policies: ")
    hint_text = find_denial_hint(plan)
    hint = f"\nHint: {escape_prose(hint_text)}\n" if hint_text else ""
    rows = _render_fitting_items(
        list_verdict_items(plan), "verdict", max_length - len(policy_counts) - len(hint) - 20
    )
    parts = [f"{policy_counts}\n" if policy_counts else "", rows, hint.lstrip("\n")]
    return _render_section("Policies", "\n".join(part for part in parts if part))


def _render_warnings(plan: Plan, max_length: int) -> str:
    """Render the orphans, and the diagnostics that do not prevent an apply."""
    orphans = [c for c in plan.changes if c.action is Action.NO_OP]
    orphan_names = {str(c.id) for c in orphans}
    items = [
        d
        for d in sort_diagnostics(plan.diagnostics)
        if not d.is_blocking and not (d.code == ORPHANED_CODE and d.resource in orphan_names)
    ]
    rows: list[RenderItem] = [partial(_render_orphans, orphans, describe_exclusions(plan))] if orphans else []
    rows += [partial(render_diagnostic_item, item) for item in items]
    return _render_section("Warnings", _render_fitting_items(rows, "warning", max_length - 20))


def _render_orphans(orphans: Sequence[Change], exclusions: Mapping[str, str]) -> str:
    names = join_nonempty(
        escape_code(str(c.id))
        + (f" (owner {escape_code(c.owner)})" if c.owner else "")
        + escape_prose(exclusions.get(str(c.id), ""))
        for c in orphans[:_MAX_ORPHANS]
    )
    omission_note = f" and {len(orphans) - _MAX_ORPHANS:,} more" if len(orphans) > _MAX_ORPHANS else ""
    title = (
        f"**{format_count(len(orphans), 'orphan')}**: owned, but no longer declared: {names}{omission_note}"
    )
    hint = format_orphan_hint([str(c.id) for c in orphans])
    return f"- {title}<br>Hint: {escape_prose(hint)}\n"


def _render_footer(plan: Plan, identity: str) -> str:
    summary = plan.summary
    counts = [
        (summary.unchanged, "unchanged"),
        (summary.orphaned, "orphaned"),
        (summary.unmanaged, "unmanaged"),
    ]
    parts = [f"Plan {escape_code(identity)}", *(f"{count:,} {word}" for count, word in counts if count)]
    adoption_text = format_adoption(plan)
    return "".join([f"{adoption_text}\n" if adoption_text else "", " · ".join(parts), "\n"])


def _list_active_changes(plan: Plan) -> list[Change]:
    """Return the changes, the riskiest first, so that the safest changes are omitted if space runs out."""
    return sort_by_risk(change for change in plan.changes if change.action is not Action.NO_OP)


def _render_section(title: str, text: str) -> str:
    return f"### {title}\n\n{text}" if text else ""


def _render_fitting_items(items: Sequence[RenderItem], noun: str, max_length: int) -> str:
    """Render the items that fit into the comment, and the number of omitted items."""
    fitting_items = take_fitting((item() for item in items), max_length - 60)
    omitted_count = len(items) - len(fitting_items)
    omission_note = (
        f"- … and {format_count(omitted_count, f'more {noun}')} (omitted)\n" if omitted_count else ""
    )
    return "".join([*fitting_items, omission_note])


def _render_table(table_header: str, rows: Iterator[str], changes: Sequence[Change], max_length: int) -> str:
    """Render the rows that fit into the comment, and the number of omitted changes by action."""
    if not changes:
        return ""
    fitting_rows = take_fitting(rows, max_length - len(table_header) - 200)
    omitted_changes = changes[len(fitting_rows) :]
    if not omitted_changes:
        return "".join([table_header, *fitting_rows])
    counts = Counter(change.action.value for change in omitted_changes)
    omitted_counts = join_nonempty(
        f"{counts[action.value]:,} {action.value}" for action in Action if counts[action.value]
    )
    return "".join(
        [
            table_header,
            *fitting_rows,
            f"\n… and {format_count(len(omitted_changes), 'more change')} (omitted): {omitted_counts}.\n",
        ]
    )


def take_fitting(rows: Iterable[str], max_length: int) -> list[str]:
    """Return the rows that fit into ``max_length`` characters, including a newline after each row.

    The function stops at the first row that does not fit. If ``rows`` is a generator, it does not render any
    further rows.
    """
    taken = []
    for row in rows:
        max_length -= len(row) + 1
        if max_length < 0:
            break
        taken.append(row)
    return taken
