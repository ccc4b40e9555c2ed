"""A plan as a comment on a pull request: what is risky first, then what changes, then how.

Markdown as GitHub and GitLab take it. What does not fit into a comment is counted instead.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kdeclare.core.diagnostics import Diagnostic, Place, in_order
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.engine.planning.plan_document import plan_id
from kdeclare.report.elements.diagnostics_text import (
    hint_of,
    is_brokers,
    judgement,
    policies_line,
    spoken,
    tally,
)
from kdeclare.report.elements.markdown_escape import code, prose
from kdeclare.report.elements.values import key_of, listed, plural, show
from kdeclare.report.outcome import fields_denied, plan_outcome
from kdeclare.report.plan.plan_text import (
    ORPHANED,
    adopted_fields,
    adoption,
    find_targets,
    icon,
    one_side,
    parts_of,
    why,
)
from kdeclare.report.plan.risks import (
    GRAVE,
    by_risk,
    cause_of,
    causes_of,
    names_of_risks,
    risks_of,
    why_irreversible,
)

Item = Callable[[], str]
"""An item of a list, made when there is room for it."""


def risks(plan: Plan) -> list[Item]:
    """What keeps changes from being made, then what cannot be undone or loses records."""
    reasons, places = why_irreversible(plan), _places(plan)
    return [_risk_item(found, reasons, places) for found in risks_of(plan)]


def _risk_item(
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


_NAMED = 4
_FIELDS = 40


def change_row(
    change: Change, plan: Plan, denied: Collection[str] = (), targets: Iterable[tuple[str, str]] = ()
) -> str:
    """Icon, resource, what is done and why, risk, and which fields change, or would if not ``denied``.

    targets: what it acts on, see `report.plan_text.find_targets`.
    """
    acts_on = (f"{prose(what)} {code(target)}" for what, target in targets)
    action = listed([change.action.value, prose(why(change, plan)), *acts_on])
    risk = ", ".join(_risk(each) for each in change.risks if each is not Risk.SAFE) or Risk.SAFE.value
    if change.blocked:
        risk = f"**blocked** {code(change.blocked)}"
    return _row(icon(change), code(str(change.id)), action, risk, _fields(change, denied))


def details(change: Change, denied: Collection[str] = ()) -> str:
    """Its fields with their values, folded in; of very many, the first and a count.

    denied: paths of fields that stay as they are.
    """
    place = f", {code(str(change.source))}" if change.source else ""
    title = f"{icon(change)} {code(str(change.id))}: {plural(len(change.fields), 'field')}{place}"
    left = len(change.fields) - _FIELDS
    more = f"\n… and {plural(left, 'more field')}, left out here\n" if left > 0 else ""
    table = "".join(_values(change, denied))
    return f"<details><summary>{title}</summary>\n\n{table}{more}\n</details>\n"


def _risk(risk: Risk) -> str:
    return f"**{risk.value}**" if risk in GRAVE else risk.value


def details_of(count: int) -> str:
    """What stands for the fields of changes that there is no room for."""
    return f"… and the values of {plural(count, 'more change')}, left out here; the plan as text has them."


def _values(change: Change, denied: Collection[str]) -> Iterator[str]:
    fields = change.fields[:_FIELDS]
    if change.action is Action.UPDATE:
        yield "| Field | Op | Before | After |\n|---|---|---|---|\n"
        adopted = adopted_fields(change)
        for field in fields:
            op = "" if field.op is FieldOp.CHANGE else field.op.value
            op = listed([op, "adopt" if field.path in adopted else ""])
            op = "**denied**" if field.path in denied else op
            yield _row(_name(field), op, _value(field, field.before), _with_risk(_after(field), field))
        return
    yield "| Field | Value |\n|---|---|\n"
    for field in fields:
        yield _row(_name(field), _value(field, one_side(change, field)))


def _with_risk(cell: str, field: FieldChange) -> str:
    told = cause_of(field)
    return f"{cell}<br>{prose(told)}" if told else cell


def _after(field: FieldChange) -> str:
    after = _value(field, field.after)
    if field.op is FieldOp.DELETE and field.after is None:
        return f"{after} (back to the default)"
    parts = parts_of(field)
    return f"{after} {code(parts)}" if parts else after


def _value(field: FieldChange, value: JsonValue) -> str:
    return code(show(value, field.path))


def _name(field: FieldChange) -> str:
    return code(key_of(field.path))


def _fields(change: Change, denied: Collection[str]) -> str:
    shown = change.fields[:_NAMED]
    named = [f"{_name(field)}{' (denied)' if field.path in denied else ''}" for field in shown]
    more = len(change.fields) - _NAMED
    return listed([*named, f"{more:,} more" if more > 0 else ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


LIMIT = 65_000
"""How many characters a comment has at most: GitHub takes 65,536, and whoever posts it adds a few."""

_FEW = 20
_SENTENCES = {
    "error": "Nothing of it can be applied before the errors are gone.",
    "denied": "What is denied stays as it is; apply does the rest.",
}


def plan_markdown(plan: Plan, identity: str | None = None) -> str:
    """The whole comment, at most ``LIMIT`` characters, ending in a new line.

    identity: the plan's id where it was read from a file; made anew otherwise.
    """
    outcome = plan_outcome(plan)
    head = f"## {prose(outcome.headline)}\n"
    if outcome.status in _SENTENCES:
        head += f"\n{_SENTENCES[outcome.status]}\n"
    foot = _foot(plan, identity or plan_id(plan))
    sections: tuple[tuple[Callable[[Plan, int], str], float], ...] = (
        (_risks, 0.9),
        (_changes, 0.3),
        (_policies, 0.3),
        (_warnings, 0.4),
        (_details, 1.0),
    )
    room = LIMIT - len(head) - len(foot) - len(sections) - 1  # and a line between each two
    found = {}
    for section, share in sections:
        found[section] = section(plan, int(room * share))
        room -= len(found[section])
    blocks = [head, found[_risks], found[_changes], found[_policies], found[_details], found[_warnings], foot]
    return "\n".join(block for block in blocks if block)


def problem_markdown(diagnostics: Iterable[Diagnostic]) -> str:
    """What a command that failed as a whole says; at most ``LIMIT`` characters."""
    items = in_order(diagnostics)
    head = f"## kdeclare failed: {tally(items) or 'see below'}.\n"
    rows = [partial(diagnostic_item, item) for item in items]
    return f"{head}\n{_rows(rows, 'problem', LIMIT - len(head) - 1)}"


def _risks(plan: Plan, room: int) -> str:
    """All of them, in short where there are very many; what a comment has no room for is counted."""
    for items in (risks(plan), risks_in_short(plan)):
        shown = fitting((item() for item in items), room - 20)
        if len(shown) == len(items):
            return _section("Risks", "".join(shown))
    shown = fitting((item() for item in items), room - 300)
    left = Counter(map(_kind_of_risk, risks_of(plan)[len(shown) :]))
    counts = listed(f"{count:,} {what}" for what, count in left.items())
    more = f"- … and {plural(left.total(), 'more risk')}, left out here: {counts}\n"
    return _section("Risks", "".join([*shown, more]))


def _kind_of_risk(found: Diagnostic | Verdict | Change) -> str:
    if isinstance(found, Diagnostic):
        return found.severity.value
    if isinstance(found, Verdict):
        return judgement(found)
    return "blocked" if found.blocked else f"{found.risk.value} {found.action.value}"


def _changes(plan: Plan, room: int) -> str:
    changes = _acting(plan)
    head = "|   | Resource | Change | Risk | Fields |\n|---|---|---|---|---|\n"
    denied = fields_denied(plan)
    targets = find_targets(plan)
    rows = (
        change_row(change, plan, denied.get(str(change.id), ()), targets.get(str(change.id), ()))
        for change in changes
    )
    return _section("Changes", _table(head, rows, changes, room - 20))


def _details(plan: Plan, room: int) -> str:
    changes = [change for change in _acting(plan) if change.fields]
    denied = fields_denied(plan)
    blocks = fitting((details(c, denied.get(str(c.id), ())) for c in changes), room - 200)
    text = "\n".join(blocks)
    left = len(changes) - len(blocks)
    if left:
        text += f"\n{details_of(left)}\n" if blocks else f"{details_of(left)}\n"
    return _section("Before and after", text)


def _policies(plan: Plan, room: int) -> str:
    """What policies said beside denials, which are among the risks."""
    line = policies_line(plan.verdicts).removeprefix("Policies: ")
    advice = hint_of(plan)
    hint = f"\nHint: {prose(advice)}.\n" if advice else ""
    rows = _rows(overridden_or_warned(plan), "verdict", room - len(line) - len(hint) - 20)
    parts = [f"{line}\n" if line else "", rows, hint.lstrip("\n")]
    return _section("Policies", "\n".join(part for part in parts if part))


def _warnings(plan: Plan, room: int) -> str:
    """Diagnostics that keep nothing from being applied, and orphans."""
    orphans = [c for c in plan.changes if c.action is Action.NO_OP]
    names = {str(c.id) for c in orphans}
    items = [
        d
        for d in in_order(plan.diagnostics)
        if not d.blocks and not (d.code == ORPHANED and d.resource in names)
    ]
    rows: list[Item] = [partial(_orphans, orphans)] if orphans else []
    rows += [partial(diagnostic_item, item) for item in items]
    return _section("Warnings", _rows(rows, "warning", room - 20))


def _orphans(orphans: Sequence[Change]) -> str:
    names = listed(code(str(c.id)) for c in orphans[:_FEW])
    more = f" and {len(orphans) - _FEW:,} more" if len(orphans) > _FEW else ""
    title = f"**{plural(len(orphans), 'orphan')}**: owned, but no longer declared: {names}{more}"
    return f"- {title}<br>Hint: --allow-deletes deletes, --forget lets go and keeps it in the cluster.\n"


def _foot(plan: Plan, identity: str) -> str:
    s = plan.summary
    counts = [(s.unchanged, "unchanged"), (s.orphaned, "orphaned"), (s.unmanaged, "unmanaged")]
    parts = [f"Plan {code(identity)}", *(f"{count:,} {word}" for count, word in counts if count)]
    taken = adoption(plan)
    return "".join([f"{taken}\n" if taken else "", " · ".join(parts), "\n"])


def _acting(plan: Plan) -> list[Change]:
    """The changes, those that need a look first: they must not be the ones that are left out."""
    return by_risk(change for change in plan.changes if change.action is not Action.NO_OP)


def _section(title: str, text: str) -> str:
    return f"### {title}\n\n{text}" if text else ""


def _rows(items: Sequence[Item], what: str, room: int) -> str:
    """The items of a list that fit, and how many do not."""
    shown = fitting((item() for item in items), room - 60)
    left = len(items) - len(shown)
    more = f"- … and {plural(left, f'more {what}')}, left out here\n" if left else ""
    return "".join([*shown, more])


def _table(head: str, rows: Iterator[str], changes: Sequence[Change], room: int) -> str:
    """The rows that fit, and what the others come to."""
    if not changes:
        return ""
    shown = fitting(rows, room - len(head) - 200)
    left = changes[len(shown) :]
    if not left:
        return "".join([head, *shown])
    counts = Counter(change.action.value for change in left)
    what = listed(f"{counts[action.value]:,} {action.value}" for action in Action if counts[action.value])
    return "".join([head, *shown, f"\n… and {plural(len(left), 'more change')}, left out here: {what}.\n"])


def fitting(rows: Iterable[str], room: int) -> list[str]:
    """As many of the first as there is room for, each with a line's end; none is made that is not needed."""
    found = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        found.append(row)
    return found
