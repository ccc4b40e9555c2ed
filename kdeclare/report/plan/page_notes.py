"""The lists of notes on the pages of plans and runs: risks, problems, and what reviewers should know."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from kdeclare.core.diagnostics import Diagnostic, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import Action, Change
from kdeclare.report.elements.diagnostics_text import (
    find_denial_hint,
    find_policy_noun,
    format_policy_counts,
    format_subject,
    get_verdict_label,
    is_system_verdict,
    render_verdict_lines,
    select_notable_verdicts,
)
from kdeclare.report.elements.values import (
    format_count,
    join_nonempty,
    sanitize_for_terminal,
    strip_configs_prefix,
)
from kdeclare.report.plan.impact import get_observation_label, group_observations, list_other_observations
from kdeclare.report.plan.plan_page_data import ACTION_LABELS, format_field_sides
from kdeclare.report.plan.plan_text import ORPHANED_CODE, describe_exclusions, format_orphan_hint
from kdeclare.report.plan.risks import (
    SEVERE_RISKS,
    RiskCause,
    find_irreversible_reasons,
    list_risk_causes,
    list_risk_names,
    list_risks,
)
from kdeclare.report.run.views import RunDetail, RunStep

_MAX_SEVERE_FIELDS = 4
_MAX_RISK_FIELDS = 2
"""The maximum number of fields shown with their values for a risk that is not severe.

For all other fields, only their number is shown.
"""

MAX_NOTES = 200
"""The maximum number of notes in a list on a page. For the others, only their number is shown."""


@dataclass(frozen=True, slots=True)
class PageNote:
    """A note in a list on the page, such as a risk or a problem.

    tag: a word for the severity of the note.
    more: additional tags.
    resource: the resource that the note is about; None if it is not about one resource.
    """

    tag: str
    title: str
    resource: str | None = None
    lines: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


def build_notes_data(
    items: Sequence[PageNote], rest_reference: str, max_items: int | None = MAX_NOTES
) -> dict[str, object]:
    """Build the data of a list of notes, with the number of omitted notes.

    rest_reference: where users can find the omitted notes.
    max_items: the maximum number of notes; None for no limit.
    """
    shown_items = [asdict(item) for item in items[:max_items]]
    return {"items": shown_items, "left": len(items) - len(shown_items), "others": rest_reference}


def list_plan_risks(plan: Plan) -> list[PageNote]:
    """Return notes about the risks of a plan, in the order of `list_risks`."""
    reasons = find_irreversible_reasons(plan)
    observations = group_observations(plan)
    return [_build_risk_note(found, reasons, observations) for found in list_risks(plan)]


def list_plan_notes(plan: Plan) -> list[PageNote]:
    """Return notes about everything that reviewers should know but that does not prevent an apply.

    These are verdicts, impact, diagnostics, orphans and unmanaged configs.
    """
    verdicts = [_build_verdict_note(v) for v in select_notable_verdicts(plan.verdicts) if not v.is_denial]
    impact = [_build_impact_note(item) for item in list_other_observations(plan)]
    orphans = {str(c.id) for c in plan.changes if c.action is Action.NO_OP}
    remaining_diagnostics = (
        d
        for d in sort_diagnostics(plan.diagnostics)
        if not (d.code == ORPHANED_CODE and d.resource in orphans)
    )
    warnings = [_build_diagnostic_note(d) for d in remaining_diagnostics if not d.is_blocking]
    unmanaged_keys = ((id_, keys) for id_, keys in plan.unmanaged_configs.items() if keys)
    unmanaged = [
        PageNote(
            "unmanaged",
            _UNMANAGED_TITLE,
            sanitize_for_terminal(id_),
            (sanitize_for_terminal(", ".join(keys)),),
        )
        for id_, keys in unmanaged_keys
    ]
    return [
        *impact,
        *_build_policy_notes(plan),
        *verdicts,
        *warnings,
        *_build_orphan_notes(sorted(orphans), describe_exclusions(plan)),
        *unmanaged,
    ]


def _build_policy_notes(plan: Plan) -> list[PageNote]:
    policy_counts, hint = (
        format_policy_counts(plan.verdicts).removeprefix("Policies: "),
        find_denial_hint(plan),
    )
    if not policy_counts and not hint:
        return []
    return [
        PageNote(
            "policies", policy_counts or hint, None, (f"Hint: {hint}",) if hint and policy_counts else ()
        )
    ]


def _build_orphan_notes(names: Sequence[str], exclusions: Mapping[str, str]) -> list[PageNote]:
    if not names:
        return []
    title = f"{format_count(len(names), 'orphan')}: owned, but no longer declared"
    hint = format_orphan_hint([sanitize_for_terminal(name) for name in names])
    notes = (f"{sanitize_for_terminal(name)}{exclusions[name]}" for name in names if name in exclusions)
    return [PageNote("orphaned", title, None, (*notes, f"Hint: {hint}"))]


def list_run_problems(detail: RunDetail) -> list[PageNote]:
    """Return notes about unsuccessful operations, worst first, and about changes denied before the run."""
    names = {step.id: sanitize_for_terminal(f"{step.verb} {step.resource}") for step in detail.steps}
    unsuccessful_steps = [step for step in detail.steps if step.known_status is not Status.DONE]
    problems = [_build_step_note(step, names) for step in sorted(unsuccessful_steps, key=_rank_step)]
    denials = [
        _build_risk_note(found, {}, {}) for found in list_risks(detail.plan) if not isinstance(found, Change)
    ]
    return [*problems, *denials]


def list_run_notes(detail: RunDetail) -> list[PageNote]:
    """Return notes about overridden denials, and about diagnostics that did not block the run."""
    overrides = [
        PageNote(
            "overridden",
            sanitize_for_terminal(
                f"policy {o.policy}" + (f" on {format_subject(o.topic)}" if o.topic is not None else "")
            ),
            sanitize_for_terminal(o.resource),
            (
                sanitize_for_terminal(f"Reason: {o.reason}"),
                sanitize_for_terminal(f"By {o.principal or detail.run.user}"),
            ),
        )
        for o in detail.overrides
    ]
    return [
        *overrides,
        *(_build_diagnostic_note(d) for d in sort_diagnostics(detail.diagnostics) if not d.is_blocking),
    ]


_UNMANAGED_TITLE = "set, but neither declared nor owned (left unchanged)"
_STATUSES_BY_SEVERITY = (
    Status.FAILED,
    Status.DENIED,
    Status.UNKNOWN,
    Status.STALE,
    Status.SKIPPED,
    Status.INTERRUPTED,
    Status.STARTED,
)


def _rank_step(step: RunStep) -> int:
    return _STATUSES_BY_SEVERITY.index(step.known_status)


def _build_step_note(step: RunStep, names: Mapping[str, str]) -> PageNote:
    status = step.known_status
    tag = "not started" if status is Status.INTERRUPTED else status.value
    # An error that only repeats the tag ("stale") is omitted. So is a cause that the message already names.
    error_text = ": ".join(
        sanitize_for_terminal(part) for part in (step.error, step.message) if part and part != tag
    )
    cause = step.cause if step.cause and step.cause not in step.message else None
    cause_text = f"because of {names.get(cause, sanitize_for_terminal(cause))}" if cause else ""
    return PageNote(
        tag,
        sanitize_for_terminal(step.verb),
        sanitize_for_terminal(step.resource),
        _drop_empty((error_text, cause_text, _format_owner(step.owner))),
    )


def _build_risk_note(
    risk: Diagnostic | Verdict | Change,
    reasons: Mapping[str, Sequence[str]],
    observations: Mapping[str, Sequence[Observation]],
) -> PageNote:
    if isinstance(risk, Diagnostic):
        return _build_diagnostic_note(risk)
    if isinstance(risk, Verdict):
        return _build_verdict_note(risk)
    name = sanitize_for_terminal(str(risk.id))
    if risk.blocked:
        lines = _drop_empty([_format_owner(risk.owner)])
        return PageNote("blocked", sanitize_for_terminal(risk.blocked), name, lines)
    causes = (line for cause in list_risk_causes(risk) for line in _render_cause_lines(risk, cause))
    lines = (*causes, *map(sanitize_for_terminal, reasons.get(str(risk.id), ())))
    impact = (
        f"{get_observation_label(item)}: {sanitize_for_terminal(item.text)}"
        for item in observations.get(str(risk.id), ())
    )
    return PageNote(
        risk.risk.value,
        ACTION_LABELS[risk.action][0],
        name,
        _drop_empty((_format_owner(risk.owner), *impact, *lines)),
        tuple(list_risk_names(risk)[1:]),
    )


def _format_owner(owner: str | None) -> str:
    return f"owner: {sanitize_for_terminal(owner)}" if owner else ""


def _render_cause_lines(change: Change, cause: RiskCause) -> list[str]:
    """Return the cause of a risk, and a line with the old and new values of the affected fields."""
    text = sanitize_for_terminal(cause.cause)
    fields = {field.path: field for field in change.fields}
    max_fields = _MAX_SEVERE_FIELDS if cause.risk in SEVERE_RISKS else _MAX_RISK_FIELDS
    values = []
    for path in cause.paths[:max_fields]:
        sides = [side for side in format_field_sides(change, fields[path]) if side is not None]
        values.append(f"{sanitize_for_terminal(strip_configs_prefix(path))} {' → '.join(sides)}")
    left = len(cause.paths) - max_fields
    field_line = join_nonempty([*values, format_count(left, "more field") if left > 0 else ""])
    return list(_drop_empty((f"{cause.risk.value}: {text}" if text else "", field_line)))


def _build_impact_note(observation: Observation) -> PageNote:
    label, resource = get_observation_label(observation), sanitize_for_terminal(observation.resource)
    return PageNote(label, "Impact", resource or None, (sanitize_for_terminal(observation.text),))


def _build_diagnostic_note(diagnostic: Diagnostic) -> PageNote:
    position = sanitize_for_terminal(str(diagnostic.place)) if diagnostic.place else ""
    hint = f"Hint: {sanitize_for_terminal(diagnostic.hint)}" if diagnostic.hint else ""
    resource = sanitize_for_terminal(diagnostic.resource) if diagnostic.resource else None
    return PageNote(
        diagnostic.severity.value,
        sanitize_for_terminal(diagnostic.summary),
        resource,
        _drop_empty((sanitize_for_terminal(diagnostic.detail), hint, position)),
    )


def _build_verdict_note(verdict: Verdict) -> PageNote:
    policy = (
        "a broker policy"
        if is_system_verdict(verdict)
        else sanitize_for_terminal(f"{find_policy_noun(verdict)} {verdict.policy}")
    )
    lines = tuple(line.strip() for line in render_verdict_lines([verdict]))
    return PageNote(get_verdict_label(verdict), policy, sanitize_for_terminal(verdict.resource), lines)


def _drop_empty(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)
