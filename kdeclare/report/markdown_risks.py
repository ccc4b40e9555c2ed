"""What a reviewer must not miss, as the items of a Markdown list."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial

from kdeclare.model.changes import Action, Change, Risk
from kdeclare.model.diagnostics import Diagnostic, Place, in_order
from kdeclare.model.plan import Plan, Verdict
from kdeclare.report.markdown_escape import code, prose
from kdeclare.report.verdicts_text import is_brokers, judgement, spoken

Item = Callable[[], str]
"""An item of a list, made when there is room for it."""

_RISKS = tuple(reversed(Risk))
_FEW = 3
_GRAVE = (Risk.DESTRUCTIVE, Risk.IRREVERSIBLE)


def risks(plan: Plan) -> list[Item]:
    """What keeps changes from being made, then what cannot be undone or loses records."""
    blocking = [d for d in in_order(plan.diagnostics) if d.blocks]
    denials = [v for v in spoken(plan.verdicts) if v.denies]
    said = {d.resource for d in blocking} | {v.resource for v in denials}
    places = _places(plan)
    blocked = [c for c in plan.changes if c.blocked and str(c.id) not in said]
    grave = by_risk(
        c for c in plan.changes if not c.blocked and c.action is not Action.NO_OP and c.risk in _GRAVE
    )
    reasons = _irreversible(plan)
    return [
        *(partial(diagnostic_item, d) for d in blocking if d.is_error),
        *(partial(_verdict, v, places) for v in denials),
        *(partial(diagnostic_item, d) for d in blocking if not d.is_error),
        *(partial(_blocked, c) for c in blocked),
        *(partial(_grave, c, reasons.get(str(c.id), ())) for c in grave),
    ]


def overridden_or_warned(plan: Plan) -> list[Item]:
    """What policies said that keeps nothing from being done."""
    places = _places(plan)
    return [partial(_verdict, v, places) for v in spoken(plan.verdicts) if not v.denies]


def by_risk(changes: Iterable[Change]) -> list[Change]:
    """The blocked ones first, then from irreversible to safe; otherwise in the order given."""
    return sorted(changes, key=lambda c: (not c.blocked, _RISKS.index(c.risk)))


def diagnostic_item(item: Diagnostic) -> str:
    """Summary, resource and place; then the detail; then the hint."""
    names = [code(str(part)) for part in (item.resource, item.place) if part]
    lines = [", ".join([f"- **{item.severity.value}** {prose(item.summary)}", *names])]
    lines += [prose(item.detail)] if item.detail else []
    lines += [f"Hint: {prose(item.hint)}"] if item.hint else []
    return "<br>".join(lines) + "\n"


def _verdict(verdict: Verdict, places: dict[str, Place | None]) -> str:
    by = "" if verdict.override is not None else "by "
    policy = "a policy of the brokers" if is_brokers(verdict) else f"policy {code(verdict.policy)}"
    topic = f" on topic {code(verdict.topic)}" if verdict.topic is not None else ""
    place = places.get(verdict.resource)
    names = [f"- **{judgement(verdict)}** {by}{policy}{topic}", code(verdict.resource)]
    lines = [", ".join([*names, *([code(str(place))] if place else [])])]
    lines += [prose(verdict.message)] if verdict.message else []
    lines += [f"Reason: {prose(verdict.override)}"] if verdict.override is not None else []
    return "<br>".join(lines) + "\n"


def _blocked(change: Change) -> str:
    return f"- **blocked** {code(str(change.id))}: {code(change.blocked or '')}\n"


def _grave(change: Change, reasons: Iterable[str]) -> str:
    line = f"- **{change.risk.value}** {change.action.value} of {code(str(change.id))}"
    return "<br>".join([line, *(prose(reason) for reason in reasons)]) + "\n"


def _irreversible(plan: Plan) -> dict[str, list[str]]:
    """Why operations cannot be undone, by resource; a few reasons each."""
    found: dict[str, list[str]] = defaultdict(list)
    for op in plan.operations:
        known = found[str(op.resource)]
        if op.irreversible and len(known) < _FEW and op.irreversible not in known:
            known.append(op.irreversible)
    return found


def _places(plan: Plan) -> dict[str, Place | None]:
    return {str(change.id): change.source for change in plan.changes}
