"""Render single items of a plan in Markdown: risks, verdicts, diagnostics and changes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.resources.changes import Change, FieldChange, FieldOp, Risk
from kdeclare.report.elements.diagnostics_text import (
    find_policy_noun,
    get_verdict_label,
    is_system_verdict,
    select_notable_verdicts,
)
from kdeclare.report.elements.markdown_escape import escape_code, escape_prose
from kdeclare.report.elements.values import format_count, format_value, join_nonempty, strip_configs_prefix
from kdeclare.report.plan.impact import get_observation_label, group_observations
from kdeclare.report.plan.plan_text import (
    explain_change,
    find_adopted_fields,
    find_owner_to_ask,
    format_list_edits,
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
)

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
    impact = map(render_observation, observations)
    return "<br>".join([line, *impact, *causes, *(escape_prose(reason) for reason in reasons)]) + "\n"


def render_observation(observation: Observation) -> str:
    """Render one observation, such as the number of records that a change deletes."""
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
