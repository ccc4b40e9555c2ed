"""What the page of a plan or a run says above its list: what needs a look, and what else should be known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from kdeclare.core.changes import Action, Change
from kdeclare.core.diagnostics import Diagnostic, in_order
from kdeclare.core.plan import Plan, Verdict
from kdeclare.core.run import Status
from kdeclare.report.plan_page_data import ACTIONS
from kdeclare.report.plan_text import ORPHANED
from kdeclare.report.risks import causes_of, names_of_risks, risks_of, why_irreversible
from kdeclare.report.values import clean, plural
from kdeclare.report.verdicts_text import (
    hint_of,
    is_brokers,
    judgement,
    name_subject,
    policies_line,
    spoken,
    verdict_lines,
)
from kdeclare.report.views import RunDetail, RunStep

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
