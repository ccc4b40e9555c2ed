"""What a reviewer must not miss, as the items of a Markdown list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kdeclare.core.changes import Change
from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.core.plan import Plan, Verdict
from kdeclare.report.markdown_escape import code, prose
from kdeclare.report.risks import causes_of, names_of_risks, risks_of, why_irreversible
from kdeclare.report.verdicts_text import is_brokers, judgement, spoken

Item = Callable[[], str]
"""An item of a list, made when there is room for it."""


def risks(plan: Plan) -> list[Item]:
    """What keeps changes from being made, then what cannot be undone or loses records."""
    reasons, places = why_irreversible(plan), _places(plan)
    return [_risk(found, reasons, places) for found in risks_of(plan)]


def _risk(
    found: Diagnostic | Verdict | Change,
    reasons: Mapping[str, Sequence[str]],
    places: dict[str, Place | None],
) -> Item:
    if isinstance(found, Diagnostic):
        return partial(diagnostic_item, found)
    if isinstance(found, Verdict):
        return partial(_verdict, found, places)
    if found.blocked:
        return partial(_blocked, found)
    return partial(_grave, found, reasons.get(str(found.id), ()))


def overridden_or_warned(plan: Plan) -> list[Item]:
    """What policies said that keeps nothing from being done."""
    places = _places(plan)
    return [partial(_verdict, v, places) for v in spoken(plan.verdicts) if not v.denies]


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
    topic = f" on {_subject(verdict.topic)}" if verdict.topic is not None else ""
    place = places.get(verdict.resource)
    names = [f"- **{judgement(verdict)}** {by}{policy}{topic}", code(verdict.resource)]
    lines = [", ".join([*names, *([code(str(place))] if place else [])])]
    lines += [prose(verdict.message)] if verdict.message else []
    lines += [f"Reason: {prose(verdict.override)}"] if verdict.override is not None else []
    return "<br>".join(lines) + "\n"


def _blocked(change: Change) -> str:
    return f"- **blocked** {code(str(change.id))}: {code(change.blocked or '')}\n"


def _grave(change: Change, reasons: Iterable[str]) -> str:
    line = f"- **{', '.join(names_of_risks(change))}** {change.action.value} of {code(str(change.id))}"
    causes = (f"{c.risk.value}: {prose(c.text)}" for c in causes_of(change) if c.text)
    return "<br>".join([line, *causes, *(prose(reason) for reason in reasons)]) + "\n"


def risks_in_short(plan: Plan) -> list[Item]:
    """The same items, a line each: for plans that have too many of them for a comment."""
    return [partial(_in_short, found) for found in risks_of(plan)]


def _in_short(found: Diagnostic | Verdict | Change) -> str:
    if isinstance(found, Diagnostic):
        resource = f" {code(found.resource)}" if found.resource else ""
        return f"- **{found.severity.value}** {prose(found.summary)}{resource}\n"
    if isinstance(found, Verdict):
        return f"- **{judgement(found)}** {code(found.resource)}\n"
    if found.blocked:
        return _blocked(found)
    return f"- **{', '.join(names_of_risks(found))}** {found.action.value} {code(str(found.id))}\n"


def _places(plan: Plan) -> dict[str, Place | None]:
    return {str(change.id): change.source for change in plan.changes}


def _subject(topic: str) -> str:
    return code(topic) if "/" in topic else f"topic {code(topic)}"
