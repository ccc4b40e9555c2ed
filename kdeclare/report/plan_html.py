"""A plan, or one run of it, as one HTML page."""

from typing import Any

from kdeclare.core.plan import Plan
from kdeclare.core.run import Status
from kdeclare.engine.planning.plan_document import plan_id
from kdeclare.report.history_text import moment
from kdeclare.report.html_page import Strings, html_page
from kdeclare.report.outcome import place_of, plan_outcome, to_do
from kdeclare.report.plan_graph import critical_path
from kdeclare.report.plan_page_data import body_data
from kdeclare.report.plan_page_said import plan_notes, plan_risks, run_notes, run_troubles, said_data
from kdeclare.report.plan_text import adoption
from kdeclare.report.run_text import deeds
from kdeclare.report.run_times import Waterfall, seconds_of, waterfall
from kdeclare.report.values import clean, duration, plural
from kdeclare.report.views import RunDetail

_SCRIPTS = (
    "plan_data.js",
    "plan_rows.js",
    "plan_graph.js",
    "plan_moves.js",
    "plan_times.js",
    "plan.js",
)
Facts = list[tuple[str, str]]

_IN_LIST = "the list of changes"
_IN_JSON = "--format json"


def plan_html(plan: Plan, identity: str | None = None) -> str:
    """The whole page; some 0.3 kB a change. identity: the plan's id where it was read from a file."""
    strings = Strings()
    outcome = plan_outcome(plan)
    data = body_data(plan, strings) | {
        "page": "plan",
        "quiet": outcome.status == "no-changes",
        "facts": _plan_facts(plan, identity or plan_id(plan)),
        "risky": said_data(plan_risks(plan), _IN_LIST, None),
        "notes": said_data(plan_notes(plan), _IN_JSON),
        "run": None,
    }
    return _page(data, strings, f"{clean(plan.project)}/{clean(plan.env)}: plan", outcome.headline)


def run_html(detail: RunDetail) -> str:
    """The page of a run: its plan, what came of it, and when."""
    strings = Strings()
    run = detail.run
    data = body_data(detail.plan, strings, seconds_of(detail)) | {
        "page": "run",
        "quiet": run.outcome == "done",
        "facts": _run_facts(detail),
        "risky": said_data(run_troubles(detail), _IN_LIST, None),
        "notes": said_data(run_notes(detail), _IN_JSON),
        "run": _run(detail, strings),
    }
    title = f"{clean(detail.plan.project)}/{clean(detail.plan.env)}: run {clean(run.run_id)}"
    headline = f"Run {clean(run.run_id)} on {place_of(detail.plan)}: {clean(run.gist or run.outcome)}."
    return _page(data, strings, title, headline)


def _page(data: dict[str, Any], strings: Strings, title: str, headline: str) -> str:
    return html_page("plan", _SCRIPTS, title, headline, data | {"strings": list(strings.places)})


def _plan_facts(plan: Plan, identity: str) -> Facts:
    s = plan.summary
    counts = ((s.unchanged, "in order"), (s.orphaned, "orphaned"), (s.unmanaged, "unmanaged"))
    return [
        ("plan", identity),
        ("cluster", clean(plan.cluster.id)),
        *((word, f"{count:,}") for count, word in counts if count),
        *_graph_facts(plan),
        *([("ownership", adoption(plan).strip())] if adoption(plan) else []),
    ]


def _graph_facts(plan: Plan) -> Facts:
    if not plan.operations:
        return []
    longest = len(critical_path(plan.operations))
    chain = f", {longest:,} of them one after the other" if longest else ""
    return [("execution", f"{plural(len(plan.operations), 'operation')}{chain}")]


def _run_facts(detail: RunDetail) -> Facts:
    run = detail.run
    took = duration((run.ended - run.started).total_seconds()) if run.ended else ""
    did = deeds(step.verb for step in detail.steps if step.status is Status.DONE)
    facts = (
        ("started", moment(run.started)),
        ("took", took),
        ("by", clean(run.user)),
        ("command", clean(run.command)),
        ("done", f"{run.done:,} of {plural(run.operations, 'operation')}{f': {did}' if did else ''}"),
        ("planned", to_do(detail.plan)),
        ("adopted", plural(run.adopted, "resource") if run.adopted and run.ended else ""),
        ("undoes", clean(run.undoes or "")),
        ("undone by", clean(run.undone_by or "")),
        ("plan", clean(run.plan_id)),
    )
    return [(name, text) for name, text in facts if text]


def _run(detail: RunDetail, strings: Strings) -> dict[str, Any]:
    """How each operation ended, in the order of the plan, and the bars of the waterfall."""
    names = {step.id: number for number, step in enumerate(detail.steps)}
    steps = detail.steps
    return {
        "statuses": [status.value for status in Status],
        "status": [list(Status).index(step.known_status) for step in steps],
        "error": [strings.place(clean(step.error) if step.error else None) for step in steps],
        "message": [strings.place(clean(step.message) if step.message else None) for step in steps],
        "cause": [names.get(step.cause or "", -1) for step in steps],
        "began": moment(detail.run.started),
        **_times(waterfall(detail), strings),
    }


def _times(times: Waterfall, strings: Strings) -> dict[str, Any]:
    return {
        "seconds": times.seconds,
        "span": times.span,
        "bars": [
            [b.begun, b.ended, strings.place(clean(b.verb)), list(Status).index(b.status)] for b in times.bars
        ],
        "steps": [list(bar.steps) for bar in times.bars],
    }
