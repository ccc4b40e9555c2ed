"""A plan, or one run of it, as one HTML page: headline, findings, and when operations ran."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, in_order
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import Action, Change
from kdeclare.engine.planning.plan_document import plan_id
from kdeclare.report.elements.diagnostics_text import (
    hint_of,
    is_brokers,
    judgement,
    name_subject,
    policies_line,
    spoken,
    verdict_lines,
)
from kdeclare.report.elements.html_page import Strings, html_page
from kdeclare.report.elements.values import clean, duration, plural
from kdeclare.report.outcome import place_of, plan_outcome, to_do
from kdeclare.report.plan.plan_graph import critical_path
from kdeclare.report.plan.plan_page_data import ACTIONS, body_data
from kdeclare.report.plan.plan_text import ORPHANED, adoption
from kdeclare.report.plan.risks import causes_of, names_of_risks, risks_of, why_irreversible
from kdeclare.report.run.history_text import moment
from kdeclare.report.run.run_text import deeds
from kdeclare.report.run.views import RunDetail, RunStep

_ROOM = 1.1
"""How much wider a drawing is that must show something without an end."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Operations of one verb that began together and ended together.

    begun, ended: seconds since the run began; ended None: nobody knows. steps: places in the plan's order.
    """

    begun: float
    ended: float | None
    verb: str
    status: Status
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Waterfall:
    """bars: in the order in which they began. seconds: how long the run took, until the last thing known.

    span: seconds that a drawing has room for; more than that where a bar has no end, so that it has a width.
    """

    bars: tuple[Bar, ...]
    seconds: float
    span: float


def waterfall(detail: RunDetail) -> Waterfall:
    """The bars of a run; what was never begun has none."""
    start = detail.run.started
    groups: dict[tuple[datetime, datetime | None, str, Status], list[int]] = {}
    for number, step in enumerate(detail.steps):
        if step.begun is not None:
            groups.setdefault((step.begun, step.ended, step.verb, step.known_status), []).append(number)
    bars = [
        Bar(
            _since(start, begun),
            None if ended is None else _since(start, max(begun, ended)),
            verb,
            status,
            tuple(found),
        )
        for (begun, ended, verb, status), found in groups.items()
    ]
    last = [*(bar.ended or bar.begun for bar in bars), _since(start, detail.run.ended or start)]
    seconds = max(last)
    is_open = any(bar.ended is None for bar in bars)
    return Waterfall(tuple(sorted(bars, key=_order)), seconds, seconds * _ROOM if is_open else seconds)


def seconds_of(detail: RunDetail) -> Mapping[str, float]:
    """How long each operation took, where that is known."""
    return {step.id: took for step in detail.steps if (took := _took(step)) is not None}


def _took(step: RunStep) -> float | None:
    return _since(step.begun, step.ended) if step.begun and step.ended else None


def _since(start: datetime, moment: datetime) -> float:
    return max(0.0, (moment - start).total_seconds())  # clocks can be set back


def _order(bar: Bar) -> tuple[float, float, tuple[int, ...]]:
    return bar.begun, bar.ended if bar.ended is not None else float("inf"), bar.steps


MOST = 200
"""So many notes are in a page; the others are counted."""


@dataclass(frozen=True, slots=True)
class Said:
    """One item. tag: one word of how bad it is; more: other such words.

    resource: what it is about, where it is about one.
    """

    tag: str
    title: str
    resource: str | None = None
    lines: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


def said_data(items: Sequence[Said], others: str, most: int | None = MOST) -> dict[str, object]:
    """A list for a page, and how many are left out of it. others: what has those. most: None is all."""
    shown = [asdict(item) for item in items[:most]]
    return {"items": shown, "left": len(items) - len(shown), "others": others}


def plan_risks(plan: Plan) -> list[Said]:
    """What keeps changes from being made, and what cannot be undone."""
    reasons = why_irreversible(plan)
    return [_risk(found, reasons) for found in risks_of(plan)]


def plan_notes(plan: Plan) -> list[Said]:
    """What keeps nothing from being applied: verdicts, diagnostics, and keys that nobody declares."""
    verdicts = [_verdict(v) for v in spoken(plan.verdicts) if not v.denies]
    orphans = {str(c.id) for c in plan.changes if c.action is Action.NO_OP}
    said = (d for d in in_order(plan.diagnostics) if not (d.code == ORPHANED and d.resource in orphans))
    warnings = [_diagnostic(d) for d in said if not d.blocks]
    found = ((id_, keys) for id_, keys in plan.unmanaged_configs.items() if keys)
    unmanaged = [Said("unmanaged", _UNMANAGED, clean(id_), (clean(", ".join(keys)),)) for id_, keys in found]
    return [*_policies(plan), *verdicts, *warnings, *_orphans(len(orphans)), *unmanaged]


def _policies(plan: Plan) -> list[Said]:
    asked, hint = policies_line(plan.verdicts).removeprefix("Policies: "), hint_of(plan)
    if not asked and not hint:
        return []
    return [Said("policies", asked or hint, None, (f"Hint: {hint}.",) if hint and asked else ())]


def _orphans(count: int) -> list[Said]:
    hint = "Hint: --allow-deletes deletes, --forget lets go and keeps it in the cluster."
    title = f"{plural(count, 'orphan')}: owned, but no longer declared"
    return [Said("orphaned", title, None, (hint,))] if count else []


def run_troubles(detail: RunDetail) -> list[Said]:
    """What did not end well, the worst first, and what was denied before it began."""
    names = {step.id: clean(f"{step.verb} {step.resource}") for step in detail.steps}
    bad = [step for step in detail.steps if step.known_status is not Status.DONE]
    troubles = [_trouble(step, names) for step in sorted(bad, key=_rank)]
    denied = [_risk(found, {}) for found in risks_of(detail.plan) if not isinstance(found, Change)]
    return [*troubles, *denied]


def run_notes(detail: RunDetail) -> list[Said]:
    """Denials that were not heeded, and what was found on the way."""
    overrides = [
        Said(
            "overridden",
            clean(f"policy {o.policy}" + (f" on {name_subject(o.topic)}" if o.topic is not None else "")),
            clean(o.resource),
            (clean(f"Reason: {o.reason}"), clean(f"By {o.principal or detail.run.user}")),
        )
        for o in detail.overrides
    ]
    return [*overrides, *(_diagnostic(d) for d in in_order(detail.diagnostics) if not d.blocks)]


_UNMANAGED = "set, neither declared nor owned, left alone"
_BADNESS = (
    Status.FAILED,
    Status.DENIED,
    Status.UNKNOWN,
    Status.STALE,
    Status.SKIPPED,
    Status.INTERRUPTED,
    Status.STARTED,
)


def _rank(step: RunStep) -> int:
    return _BADNESS.index(step.known_status)


def _trouble(step: RunStep, names: Mapping[str, str]) -> Said:
    status = step.known_status
    tag = "not begun" if status is Status.INTERRUPTED else status.value
    # nothing twice: "stale" is a tag, and "It needs …" names its cause
    words = ": ".join(clean(part) for part in (step.error, step.message) if part and part != tag)
    cause = step.cause if step.cause and step.cause not in step.message else None
    because = f"because of {names.get(cause, clean(cause))}" if cause else ""
    return Said(tag, clean(step.verb), clean(step.resource), _lines((words, because)))


def _risk(found: Diagnostic | Verdict | Change, reasons: Mapping[str, Sequence[str]]) -> Said:
    if isinstance(found, Diagnostic):
        return _diagnostic(found)
    if isinstance(found, Verdict):
        return _verdict(found)
    name = clean(str(found.id))
    if found.blocked:
        return Said("blocked", clean(found.blocked), name)
    causes = (f"{cause.risk.value}: {cause.text}" for cause in causes_of(found) if cause.text)
    lines = (*causes, *map(clean, reasons.get(str(found.id), ())))
    return Said(found.risk.value, ACTIONS[found.action][0], name, lines, tuple(names_of_risks(found)[1:]))


def _diagnostic(item: Diagnostic) -> Said:
    place = clean(str(item.place)) if item.place else ""
    hint = f"Hint: {clean(item.hint)}" if item.hint else ""
    resource = clean(item.resource) if item.resource else None
    return Said(item.severity.value, clean(item.summary), resource, _lines((clean(item.detail), hint, place)))


def _verdict(verdict: Verdict) -> Said:
    policy = "a policy of the brokers" if is_brokers(verdict) else clean(f"policy {verdict.policy}")
    lines = tuple(line.strip() for line in verdict_lines([verdict]))
    return Said(judgement(verdict), policy, clean(verdict.resource), lines)


def _lines(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


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
