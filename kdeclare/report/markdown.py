"""A plan as a comment on a pull request: what is risky first, then what changes, then how.

Markdown as GitHub and GitLab take it. What does not fit into a comment is counted instead.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from kdeclare.core.changes import Action, Change
from kdeclare.core.diagnostics import Diagnostic, in_order
from kdeclare.core.plan import Plan, Verdict
from kdeclare.engine.planning.plan_document import plan_id
from kdeclare.report.denials import fields_denied
from kdeclare.report.diagnostics_text import tally
from kdeclare.report.markdown_changes import change_row, details, details_of
from kdeclare.report.markdown_escape import code, prose
from kdeclare.report.markdown_risks import (
    Item,
    diagnostic_item,
    overridden_or_warned,
    risks,
    risks_in_short,
)
from kdeclare.report.outcome import plan_outcome
from kdeclare.report.plan_text import ORPHANED, adoption, find_targets
from kdeclare.report.risks import by_risk, risks_of
from kdeclare.report.values import listed, plural
from kdeclare.report.verdicts_text import hint_of, judgement, policies_line

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
