"""Render a plan or a run as an HTML page.

The page of a plan shows the risks. The page of a run shows the problems and the timing of the operations.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.plan_origin import PlanOrigin
from kdeclare.core.plans.run import Status
from kdeclare.engine.planning.plan_document import compute_plan_id
from kdeclare.report.elements.html_page import StringTable, render_html_page
from kdeclare.report.elements.values import format_count, format_duration, sanitize_for_terminal
from kdeclare.report.outcome import format_planned_counts, format_target_compact, plan_outcome
from kdeclare.report.plan.page_notes import (
    build_notes_data,
    list_plan_notes,
    list_plan_risks,
    list_run_notes,
    list_run_problems,
)
from kdeclare.report.plan.plan_graph import find_critical_path
from kdeclare.report.plan.plan_page_data import build_body_data
from kdeclare.report.plan.plan_sections import render_page_sections
from kdeclare.report.plan.plan_text import format_adoption
from kdeclare.report.plan.static_page import render_static_page
from kdeclare.report.run.effects import render_effects_section
from kdeclare.report.run.history_text import format_time
from kdeclare.report.run.run_text import format_done_counts
from kdeclare.report.run.views import RunDetail, RunStep

_OPEN_END_FACTOR = 1.1
"""The factor by which the time axis is extended if it is not known when an operation ended."""


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
_SHORT_COMMIT_LENGTH = 12


def render_plan_page(plan: Plan, identity: str | None = None, origin: PlanOrigin | None = None) -> str:
    """Render the page of a plan (about 0.5 kB per change).

    identity: the id of a plan that was read from a file. If it is None, the id is computed.
    origin: the time and the commit of the plan, if known.
    """
    strings = StringTable()
    outcome = plan_outcome(plan)
    facts = _list_plan_facts(plan, identity or compute_plan_id(plan), origin or PlanOrigin())
    risks = list_plan_risks(plan)
    data = build_body_data(plan, strings) | {
        "page": "plan",
        "quiet": outcome.status == "no-changes",
        "facts": facts,
        "risky": build_notes_data(risks, _LIST_REFERENCE, None),
        "notes": build_notes_data(list_plan_notes(plan), _JSON_REFERENCE),
        "run": None,
    }
    return _render_page(
        plan,
        data,
        strings,
        f"{sanitize_for_terminal(plan.project)}/{sanitize_for_terminal(plan.env)}: plan",
        outcome.headline,
        {"static": render_static_page(plan, facts, risks, format_count(len(risks), "risk")), "effects": ""},
    )


def render_run_page(detail: RunDetail, origin: PlanOrigin | None = None) -> str:
    """Render the page of a run: its plan, its results, and the timing of its operations.

    origin: the commit of the plan, if known. It is not stored with the run.
    """
    strings = StringTable()
    run = detail.run
    facts, problems = _list_run_facts(detail, origin or PlanOrigin()), list_run_problems(detail)
    data = build_body_data(detail.plan, strings, compute_operation_seconds(detail)) | {
        "page": "run",
        "quiet": run.outcome == "done",
        "facts": facts,
        "risky": build_notes_data(problems, _LIST_REFERENCE, None),
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
    static = render_static_page(detail.plan, facts, problems, f"{len(problems):,} not done", detail.steps)
    parts = {"static": static, "effects": render_effects_section(detail.effects)}
    return _render_page(detail.plan, data, strings, title, headline, parts)


def _render_page(
    plan: Plan,
    data: dict[str, Any],
    strings: StringTable,
    title: str,
    headline: str,
    parts: Mapping[str, str],
) -> str:
    """Render a page. parts: the HTML for the placeholders of the template, except for provider sections."""
    data = data | {"strings": list(strings.places)}
    all_parts = {"sections": render_page_sections(plan), **parts}
    return render_html_page("plan", _SCRIPTS, title, headline, data, all_parts)


def _list_plan_facts(plan: Plan, identity: str, origin: PlanOrigin) -> LabeledValues:
    summary = plan.summary
    counts = (
        (summary.unchanged, "unchanged"),
        (summary.orphaned, "orphaned"),
        (summary.unmanaged, "unmanaged"),
    )
    return [
        ("plan", identity),
        *_list_origin_facts(origin),
        ("cluster", sanitize_for_terminal(plan.cluster.id)),
        *((word, f"{count:,}") for count, word in counts if count),
        *_list_graph_facts(plan),
        *([("ownership", format_adoption(plan).strip())] if format_adoption(plan) else []),
    ]


def _list_origin_facts(origin: PlanOrigin) -> LabeledValues:
    commit = sanitize_for_terminal(origin.commit[:_SHORT_COMMIT_LENGTH])
    facts = (
        ("created", sanitize_for_terminal(origin.created_at).replace("T", " ")),
        ("commit", f"{commit}, with local changes" if commit and origin.has_local_changes else commit),
        ("author", sanitize_for_terminal(origin.author)),
    )
    return [(name, text) for name, text in facts if text]


def _list_graph_facts(plan: Plan) -> LabeledValues:
    if not plan.operations:
        return []
    path_length = len(find_critical_path(plan.operations))
    path_note = f", {path_length:,} on the critical path" if path_length else ""
    return [("execution", f"{format_count(len(plan.operations), 'operation')}{path_note}")]


def _list_run_facts(detail: RunDetail, origin: PlanOrigin) -> LabeledValues:
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
    origin_facts = _list_origin_facts(replace(origin, created_at=""))
    return [(name, text) for name, text in (*facts, *origin_facts) if text]


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
