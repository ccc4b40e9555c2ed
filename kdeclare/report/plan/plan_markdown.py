"""Render a plan in Markdown, for a comment on a pull request on GitHub or GitLab.

The comment lists the risks, then the changes, then the values of the changed fields. For items that do not
fit, only their number is shown.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kdeclare.core.diagnostics import STOPS_ON_DENIAL, Diagnostic, SourcePosition, sort_diagnostics
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.provider.provider import TextComparison
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.engine.planning.plan_document import compute_plan_id
from kdeclare.report.elements.diagnostics_text import (
    find_denial_hint,
    find_policy_noun,
    format_policy_counts,
    format_severity_counts,
    get_verdict_label,
    is_system_verdict,
    select_notable_verdicts,
)
from kdeclare.report.elements.markdown_escape import escape_code, escape_prose
from kdeclare.report.elements.values import format_count, format_value, join_nonempty, strip_configs_prefix
from kdeclare.report.outcome import find_denied_fields, plan_outcome
from kdeclare.report.plan.impact import get_observation_label, group_observations, list_other_observations
from kdeclare.report.plan.plan_sections import list_sections, render_markdown_line
from kdeclare.report.plan.plan_text import (
    ORPHANED_CODE,
    describe_exclusions,
    explain_change,
    find_adopted_fields,
    find_owner_to_ask,
    find_targets,
    format_adoption,
    format_list_edits,
    format_orphan_hint,
    get_icon,
    get_only_value,
    has_both_values,
)
from kdeclare.report.plan.risks import (
    SEVERE_RISKS,
    find_irreversible_reasons,
    format_field_risk,
    list_risk_causes,
    list_risk_names,
    list_risks,
    sort_by_risk,
)
from kdeclare.report.plan.text_comparison import render_comparison_markdown

RenderItem = Callable[[], str]
"""A function that renders an item of a list. It is called only if the comment has space left."""


def list_risk_items(plan: Plan) -> list[RenderItem]:
    """Return the items of the list of risks, in the order of `list_risks`."""
    reasons, positions = find_irreversible_reasons(plan), _find_positions(plan)
    observations = group_observations(plan)
    return [_build_risk_item(found, reasons, observations, positions) for found in list_risks(plan)]


def _build_risk_item(
    risk: Diagnostic | Verdict | Change,
    reasons: Mapping[str, Sequence[str]],
    observations: Mapping[str, Sequence[Observation]],
    positions: dict[str, SourcePosition | None],
) -> RenderItem:
    if isinstance(risk, Diagnostic):
        return partial(render_diagnostic_item, risk)
    if isinstance(risk, Verdict):
        return partial(_render_verdict, risk, positions)
    if risk.blocked:
        return partial(_render_blocked, risk)
    name = str(risk.id)
    return partial(_render_severe_change, risk, reasons.get(name, ()), observations.get(name, ()))


def list_verdict_items(plan: Plan) -> list[RenderItem]:
    """Return the items for policy warnings and overridden denials, which do not block changes."""
    positions = _find_positions(plan)
    return [
        partial(_render_verdict, v, positions)
        for v in select_notable_verdicts(plan.verdicts)
        if not v.is_denial
    ]


def render_diagnostic_item(diagnostic: Diagnostic) -> str:
    """Render a diagnostic: the summary with resource and position, then the detail, then the hint."""
    names = [escape_code(str(part)) for part in (diagnostic.resource, diagnostic.place) if part]
    lines = [", ".join([f"- **{diagnostic.severity.value}** {escape_prose(diagnostic.summary)}", *names])]
    lines += [escape_prose(diagnostic.detail)] if diagnostic.detail else []
    lines += [f"Hint: {escape_prose(diagnostic.hint)}"] if diagnostic.hint else []
    return "<br>".join(lines) + "\n"


def _render_verdict(verdict: Verdict, positions: dict[str, SourcePosition | None]) -> str:
    preposition = "" if verdict.override is not None else "by "
    policy = (
        "a broker policy"
        if is_system_verdict(verdict)
        else f"{find_policy_noun(verdict)} {escape_code(verdict.policy)}"
    )
    subject = f" on {_format_subject(verdict.topic)}" if verdict.topic is not None else ""
    position = positions.get(verdict.resource)
    parts = [
        f"- **{get_verdict_label(verdict)}** {preposition}{policy}{subject}",
        escape_code(verdict.resource),
    ]
    lines = [", ".join([*parts, *([escape_code(str(position))] if position else [])])]
    lines += [escape_prose(verdict.message)] if verdict.message else []
    lines += [f"Reason: {escape_prose(verdict.override)}"] if verdict.override is not None else []
    return "<br>".join(lines) + "\n"


def _render_blocked(change: Change) -> str:
    owner_note = _render_owner(change)
    return f"- **blocked** {escape_code(str(change.id))}: {escape_code(change.blocked or '')}{owner_note}\n"


def _render_owner(change: Change) -> str:
    owner = find_owner_to_ask(change)
    return f", owner {escape_code(owner)}" if owner else ""


def _render_severe_change(change: Change, reasons: Iterable[str], observations: Iterable[Observation]) -> str:
    line = (
        f"- **{', '.join(list_risk_names(change))}** {change.action.value} of {escape_code(str(change.id))}"
        f"{_render_owner(change)}"
    )
    causes = (f"{c.risk.value}: {escape_prose(c.text)}" for c in list_risk_causes(change) if c.text)
    impact = map(_render_observation, observations)
    return "<br>".join([line, *impact, *causes, *(escape_prose(reason) for reason in reasons)]) + "\n"


def _render_observation(observation: Observation) -> str:
    label = get_observation_label(observation)
    is_loss = observation.level is ObservationLevel.LOSS
    return f"{f'**{label}**' if is_loss else label}: {escape_prose(observation.text)}"


def list_short_risk_items(plan: Plan) -> list[RenderItem]:
    """Return the items of the list of risks in a short form (one line each), for plans with many risks."""
    observations = group_observations(plan)
    return [partial(_render_short_risk, found, observations) for found in list_risks(plan)]


def _render_short_risk(
    risk: Diagnostic | Verdict | Change, observations: Mapping[str, Sequence[Observation]]
) -> str:
    if isinstance(risk, Diagnostic):
        resource = f" {escape_code(risk.resource)}" if risk.resource else ""
        return f"- **{risk.severity.value}** {escape_prose(risk.summary)}{resource}\n"
    if isinstance(risk, Verdict):
        return f"- **{get_verdict_label(risk)}** {escape_code(risk.resource)}\n"
    if risk.blocked:
        return _render_blocked(risk)
    losses = [o for o in observations.get(str(risk.id), ()) if o.level is ObservationLevel.LOSS]
    impact = f": {escape_prose(losses[0].text)}" if losses else ""
    names = ", ".join(list_risk_names(risk))
    return f"- **{names}** {risk.action.value} {escape_code(str(risk.id))}{_render_owner(risk)}{impact}\n"


def _find_positions(plan: Plan) -> dict[str, SourcePosition | None]:
    return {str(change.id): change.source for change in plan.changes}


def _format_subject(subject: str) -> str:
    return escape_code(subject) if "/" in subject else f"topic {escape_code(subject)}"


_MAX_NAMED_FIELDS = 4
_MAX_FIELDS = 40


def render_change_row(
    change: Change, plan: Plan, denied_paths: Collection[str] = (), targets: Iterable[tuple[str, str]] = ()
) -> str:
    """Render a change as a table row: icon, resource, action with reason, risk, and changed fields.

    denied_paths: the paths of denied fields, which are marked.
    targets: see `plan_text.find_targets`.
    """
    target_texts = (f"{escape_prose(what)} {escape_code(target)}" for what, target in targets)
    action = join_nonempty([change.action.value, escape_prose(explain_change(change, plan)), *target_texts])
    risk = ", ".join(_format_risk(each) for each in change.risks if each is not Risk.SAFE) or Risk.SAFE.value
    if change.blocked:
        risk = f"**blocked** {escape_code(change.blocked)}"
    return _render_row(
        get_icon(change), escape_code(str(change.id)), action, risk, _format_field_names(change, denied_paths)
    )


def render_details(change: Change, denied_paths: Collection[str] = ()) -> str:
    """Render the fields of a change with their values in a collapsed section.

    If the change has too many fields, only the number of the remaining fields is shown.

    denied_paths: the paths of denied fields, which are marked.
    """
    position_note = f", {escape_code(str(change.source))}" if change.source else ""
    title = (
        f"{get_icon(change)} {escape_code(str(change.id))}: "
        f"{format_count(len(change.fields), 'field')}{position_note}"
    )
    omitted_count = len(change.fields) - _MAX_FIELDS
    omission_note = (
        f"\n… and {format_count(omitted_count, 'more field')} (omitted)\n" if omitted_count > 0 else ""
    )
    table = "".join(_render_values(change, denied_paths))
    return f"<details><summary>{title}</summary>\n\n{table}{omission_note}\n</details>\n"


def _format_risk(risk: Risk) -> str:
    return f"**{risk.value}**" if risk in SEVERE_RISKS else risk.value


def format_omitted_details(count: int) -> str:
    """Return a note about the number of changes whose values do not fit into the comment."""
    return (
        f"… and the values of {format_count(count, 'more change')} (omitted). "
        f"The text output of the plan shows these values."
    )


def _render_values(change: Change, denied_paths: Collection[str]) -> Iterator[str]:
    fields = change.fields[:_MAX_FIELDS]
    if has_both_values(change):
        yield "| Field | Op | Before | After |\n|---|---|---|---|\n"
        adopted_paths = find_adopted_fields(change)
        for field in fields:
            op = "" if field.op is FieldOp.CHANGE else field.op.value
            op = join_nonempty([op, "adopt" if field.path in adopted_paths else ""])
            op = "**denied**" if field.path in denied_paths else op
            yield _render_row(
                _format_name(field),
                op,
                _format_value(field, field.before),
                _append_risk(_format_after(field), field),
            )
        return
    yield "| Field | Value |\n|---|---|\n"
    for field in fields:
        yield _render_row(_format_name(field), _format_value(field, get_only_value(change, field)))


def _append_risk(cell: str, field: FieldChange) -> str:
    risk_text = format_field_risk(field)
    return f"{cell}<br>{escape_prose(risk_text)}" if risk_text else cell


def _format_after(field: FieldChange) -> str:
    after = _format_value(field, field.after)
    if field.op is FieldOp.DELETE and field.after is None:
        return f"{after} (back to the default)"
    list_edits = format_list_edits(field)
    return f"{after} {escape_code(list_edits)}" if list_edits else after


def _format_value(field: FieldChange, value: JsonValue) -> str:
    return escape_code(format_value(value, field.path))


def _format_name(field: FieldChange) -> str:
    return escape_code(strip_configs_prefix(field.path))


def _format_field_names(change: Change, denied_paths: Collection[str]) -> str:
    shown_fields = change.fields[:_MAX_NAMED_FIELDS]
    names = [
        f"{_format_name(field)}{' (denied)' if field.path in denied_paths else ''}" for field in shown_fields
    ]
    omitted_count = len(change.fields) - _MAX_NAMED_FIELDS
    return join_nonempty([*names, f"{omitted_count:,} more" if omitted_count > 0 else ""])


def _render_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


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
    """Render the observations about changes that are not in the list of risks."""
    rows: list[RenderItem] = [partial(_render_impact_row, item) for item in list_other_observations(plan)]
    return _render_section("Impact", _render_fitting_items(rows, "observation", max_length - 20))


def _render_impact_row(observation: Observation) -> str:
    resource = f"{escape_code(observation.resource)}: " if observation.resource else ""
    return f"- {resource}{_render_observation(observation)}\n"


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
