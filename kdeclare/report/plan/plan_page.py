"""Render a plan or a run as an HTML page, with its risks or problems and the timing of operations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import Action, Change
from kdeclare.engine.planning.plan_document import compute_plan_id
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
from kdeclare.report.elements.html_page import StringTable, render_html_page
from kdeclare.report.elements.values import format_count, format_duration, sanitize_for_terminal
from kdeclare.report.outcome import format_planned_counts, format_target_compact, plan_outcome
from kdeclare.report.plan.impact import get_observation_label, group_observations, list_other_observations
from kdeclare.report.plan.plan_graph import find_critical_path
from kdeclare.report.plan.plan_page_data import ACTION_LABELS, build_body_data
from kdeclare.report.plan.plan_sections import render_page_sections
from kdeclare.report.plan.plan_text import ORPHANED_CODE, format_adoption, format_orphan_hint
from kdeclare.report.plan.risks import (
    find_irreversible_reasons,
    list_risk_causes,
    list_risk_names,
    list_risks,
)
from kdeclare.report.run.effects import render_effects_section
from kdeclare.report.run.history_text import format_time
from kdeclare.report.run.run_text import format_done_counts
from kdeclare.report.run.views import RunDetail, RunStep

_OPEN_END_FACTOR = 1.1
"""The factor by which the time axis is extended if the end of an operation is unknown."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a waterfall chart: operations with the same verb that started and ended together.

    begun, ended: seconds since the start of the run; ``ended`` is None if unknown.
    steps: the indexes of the operations in the plan.
    """

    begun: float
    ended: float | None
    verb: str
    status: Status
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A waterfall chart that shows when the operations of a run were in progress.

    bars: the bars in the order of their start.
    seconds: the number of seconds from the start of the run to the last known event.
    span: the length of the time axis in seconds. It is greater than ``seconds`` if the end of a bar is
        unknown.
    """

    bars: tuple[Bar, ...]
    seconds: float
    span: float


def build_waterfall(detail: RunDetail) -> Waterfall:
    """Build the waterfall chart of a run. Operations that were not started have no bar."""
    started_at = detail.run.started or min(
        (step.begun for step in detail.steps if step.begun is not None), default=detail.run.ended
    )
    groups: dict[tuple[datetime, datetime | None, str, Status], list[int]] = {}
    for number, step in enumerate(detail.steps):
        if step.begun is not None:
            groups.setdefault((step.begun, step.ended, step.verb, step.known_status), []).append(number)
    bars = [
        Bar(
            _compute_seconds_since(started_at, begun),
            None if ended is None else _compute_seconds_since(started_at, max(begun, ended)),
            verb,
            status,
            tuple(found),
        )
        for (begun, ended, verb, status), found in groups.items()
    ]
    known_times = [
        *(bar.ended or bar.begun for bar in bars),
        _compute_seconds_since(started_at, detail.run.ended or started_at),
    ]
    seconds = max(known_times)
    is_open = any(bar.ended is None for bar in bars)
    return Waterfall(
        tuple(sorted(bars, key=_get_bar_order)), seconds, seconds * _OPEN_END_FACTOR if is_open else seconds
    )


def compute_operation_seconds(detail: RunDetail) -> Mapping[str, float]:
    """Return the duration of each operation in seconds, by operation id. Unknown durations are omitted."""
    return {
        step.id: duration_s for step in detail.steps if (duration_s := _compute_duration(step)) is not None
    }


def _compute_duration(step: RunStep) -> float | None:
    return _compute_seconds_since(step.begun, step.ended) if step.begun and step.ended else None


def _compute_seconds_since(start: datetime | None, end: datetime | None) -> float:
    if start is None or end is None:
        return 0.0
    return max(0.0, (end - start).total_seconds())  # the system clock may have been set back


def _get_bar_order(bar: Bar) -> tuple[float, float, tuple[int, ...]]:
    return bar.begun, bar.ended if bar.ended is not None else float("inf"), bar.steps


MAX_NOTES = 200
"""The maximum number of notes on a page. All other notes are counted."""


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
    """Return notes that do not prevent an apply: verdicts, diagnostics, orphans and unmanaged keys."""
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
        *_build_orphan_notes(sorted(orphans)),
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


def _build_orphan_notes(names: Sequence[str]) -> list[PageNote]:
    if not names:
        return []
    title = f"{format_count(len(names), 'orphan')}: owned, but no longer declared"
    hint = format_orphan_hint([sanitize_for_terminal(name) for name in names])
    return [PageNote("orphaned", title, None, (f"Hint: {hint}",))]


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
        _drop_empty((error_text, cause_text)),
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
        return PageNote("blocked", sanitize_for_terminal(risk.blocked), name)
    causes = (f"{cause.risk.value}: {cause.text}" for cause in list_risk_causes(risk) if cause.text)
    lines = (*causes, *map(sanitize_for_terminal, reasons.get(str(risk.id), ())))
    impact = (
        f"{get_observation_label(item)}: {sanitize_for_terminal(item.text)}"
        for item in observations.get(str(risk.id), ())
    )
    return PageNote(
        risk.risk.value,
        ACTION_LABELS[risk.action][0],
        name,
        (*impact, *lines),
        tuple(list_risk_names(risk)[1:]),
    )


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


_SCRIPTS = (
    "plan_data.js",
    "plan_rows.js",
    "plan_graph.js",
    "plan_moves.js",
    "plan_times.js",
    "plan.js",
)
LabeledValues = list[tuple[str, str]]

_LIST_REFERENCE = "the list of changes"
_JSON_REFERENCE = "--format json"


def render_plan_page(plan: Plan, identity: str | None = None) -> str:
    """Render the page of a plan (about 0.3 kB per change).

    identity: the id of a plan that was read from a file. If it is None, the id is computed.
    """
    strings = StringTable()
    outcome = plan_outcome(plan)
    data = build_body_data(plan, strings) | {
        "page": "plan",
        "quiet": outcome.status == "no-changes",
        "facts": _list_plan_facts(plan, identity or compute_plan_id(plan)),
        "risky": build_notes_data(list_plan_risks(plan), _LIST_REFERENCE, None),
        "notes": build_notes_data(list_plan_notes(plan), _JSON_REFERENCE),
        "run": None,
    }
    return _render_page(
        plan,
        data,
        strings,
        f"{sanitize_for_terminal(plan.project)}/{sanitize_for_terminal(plan.env)}: plan",
        outcome.headline,
    )


def render_run_page(detail: RunDetail) -> str:
    """Render the page of a run: its plan, its results, and the timing of its operations."""
    strings = StringTable()
    run = detail.run
    data = build_body_data(detail.plan, strings, compute_operation_seconds(detail)) | {
        "page": "run",
        "quiet": run.outcome == "done",
        "facts": _list_run_facts(detail),
        "risky": build_notes_data(list_run_problems(detail), _LIST_REFERENCE, None),
        "notes": build_notes_data(list_run_notes(detail), _JSON_REFERENCE),
        "run": _build_run_data(detail, strings),
    }
    title = (
        f"{sanitize_for_terminal(detail.plan.project)}/{sanitize_for_terminal(detail.plan.env)}: "
        f"run {sanitize_for_terminal(run.run_id)}"
    )
    headline = (
        f"Run {sanitize_for_terminal(run.run_id)} on {format_target_compact(detail.plan)}: "
        f"{sanitize_for_terminal(run.gist or run.outcome)}."
    )
    sections = render_effects_section(detail.effects)
    return _render_page(detail.plan, data, strings, title, headline, sections)


def _render_page(
    plan: Plan, data: dict[str, Any], strings: StringTable, title: str, headline: str, sections: str = ""
) -> str:
    """Render a page. sections: HTML to show before the sections of the plan."""
    data = data | {"strings": list(strings.places)}
    parts = {"sections": sections + render_page_sections(plan)}
    return render_html_page("plan", _SCRIPTS, title, headline, data, parts)


def _list_plan_facts(plan: Plan, identity: str) -> LabeledValues:
    summary = plan.summary
    counts = (
        (summary.unchanged, "unchanged"),
        (summary.orphaned, "orphaned"),
        (summary.unmanaged, "unmanaged"),
    )
    return [
        ("plan", identity),
        ("cluster", sanitize_for_terminal(plan.cluster.id)),
        *((word, f"{count:,}") for count, word in counts if count),
        *_list_graph_facts(plan),
        *([("ownership", format_adoption(plan).strip())] if format_adoption(plan) else []),
    ]


def _list_graph_facts(plan: Plan) -> LabeledValues:
    if not plan.operations:
        return []
    path_length = len(find_critical_path(plan.operations))
    path_note = f", {path_length:,} on the critical path" if path_length else ""
    return [("execution", f"{format_count(len(plan.operations), 'operation')}{path_note}")]


def _list_run_facts(detail: RunDetail) -> LabeledValues:
    run = detail.run
    run_duration = "" if run.duration_s is None else format_duration(run.duration_s)
    done_counts = format_done_counts(step.verb for step in detail.steps if step.status is Status.DONE)
    facts = (
        ("started", format_time(run.started)),
        ("took", run_duration),
        ("by", sanitize_for_terminal(run.user)),
        ("command", sanitize_for_terminal(run.command)),
        (
            "done",
            f"{run.done:,} of "
            f"{format_count(run.operations, 'operation')}{f': {done_counts}' if done_counts else ''}",
        ),
        ("planned", format_planned_counts(detail.plan)),
        ("adopted", format_count(run.adopted, "resource") if run.adopted and run.ended else ""),
        ("undoes", sanitize_for_terminal(run.undoes or "")),
        ("undone by", sanitize_for_terminal(run.undone_by or "")),
        ("plan", sanitize_for_terminal(run.plan_id)),
    )
    return [(name, text) for name, text in facts if text]


def _build_run_data(detail: RunDetail, strings: StringTable) -> dict[str, Any]:
    """Build the data of the waterfall chart and of the results of operations, in the order of the plan."""
    step_indexes = {step.id: number for number, step in enumerate(detail.steps)}
    steps = detail.steps
    return {
        "statuses": [status.value for status in Status],
        "status": [list(Status).index(step.known_status) for step in steps],
        "error": [strings.place(sanitize_for_terminal(step.error) if step.error else None) for step in steps],
        "message": [
            strings.place(sanitize_for_terminal(step.message) if step.message else None) for step in steps
        ],
        "cause": [step_indexes.get(step.cause or "", -1) for step in steps],
        "began": format_time(detail.run.started),
        **_build_waterfall_data(build_waterfall(detail), strings),
    }


def _build_waterfall_data(waterfall: Waterfall, strings: StringTable) -> dict[str, Any]:
    return {
        "seconds": waterfall.seconds,
        "span": waterfall.span,
        "bars": [
            [b.begun, b.ended, strings.place(sanitize_for_terminal(b.verb)), list(Status).index(b.status)]
            for b in waterfall.bars
        ],
        "steps": [list(bar.steps) for bar in waterfall.bars],
    }
