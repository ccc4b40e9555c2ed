"""What the page of a plan embeds, and that of a run: columns of numbers that point to texts.

Values are texts as people read them everywhere (`values.show`), so that no page knows more than the text of
a plan: neither a secret nor what stands for one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from kdeclare.core.frozen import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import type_of
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.report.elements.diagnostics_text import judgement, spoken, verdict_lines
from kdeclare.report.elements.html_page import Strings
from kdeclare.report.elements.values import clean, key_of, listed, show
from kdeclare.report.outcome import fields_denied
from kdeclare.report.plan.plan_graph import Drawing, drawing
from kdeclare.report.plan.plan_text import adopted_fields, find_targets, icon, one_side, parts_of, why
from kdeclare.report.plan.risks import by_risk
from kdeclare.version import VERSION

ACTIONS: Mapping[Action, tuple[str, str]] = {
    Action.CREATE: ("create", "is not there yet"),
    Action.UPDATE: ("change", "is there, and differs"),
    Action.DELETE: ("delete", "goes, with all it holds"),
    Action.FORGET: ("forget", "stays, and is owned no longer"),
    Action.NO_OP: ("orphaned", "owned, declared no longer, left alone"),
}
"""What the page calls them, and what they mean."""

RISKS = (*reversed(Risk),)


def body_data(plan: Plan, strings: Strings, seconds: Mapping[str, float] | None = None) -> dict[str, Any]:
    """What the pages of a plan and of its run have in common.

    Actions and risks are places in ``actions`` and ``risks``. Columns of ``changes``, ``fields`` and
    ``operations`` hold places in ``strings``, -1 where there is none; ``first`` is where a change's fields
    begin. ``after`` has a list a operation: what it comes after, and the place of the reason, by turns.
    """
    changes = listed_changes(plan)
    places = {str(change.id): number for number, change in enumerate(changes)}
    return {
        "version": VERSION,
        "actions": [list(words) for words in ACTIONS.values()],
        "risks": [risk.value for risk in RISKS],
        "changes": _changes(plan, changes, strings),
        "fields": _fields(plan, changes, strings),
        "verdicts": _verdicts(plan, strings),
        "operations": _operations(plan.operations, places, strings),
        "after": _after(plan.operations, strings),
        "graph": _graph(drawing(plan.operations, seconds), strings),
        "moves": _moves(plan, strings),
    }


def listed_changes(plan: Plan) -> list[Change]:
    """Those that need a look first, and orphans at the end."""
    acting = by_risk(change for change in plan.changes if change.action is not Action.NO_OP)
    return [*acting, *(change for change in plan.changes if change.action is Action.NO_OP)]


def _changes(plan: Plan, changes: Sequence[Change], strings: Strings) -> dict[str, list[Any]]:
    actions, targets = list(ACTIONS), find_targets(plan)
    first = [0]
    for change in changes:
        first.append(first[-1] + len(change.fields))
    return {
        "action": [actions.index(change.action) for change in changes],
        "risks": [[RISKS.index(risk) for risk in change.risks] for change in changes],
        "kind": [strings.place(clean(change.id.kind)) for change in changes],
        "name": [strings.place(clean(change.id.name)) for change in changes],
        "icon": [strings.place(icon(change)) for change in changes],
        "why": [
            strings.place(_why(change, plan, targets.get(str(change.id), ())) or None) for change in changes
        ],
        "source": [strings.place(clean(str(c.source)) if c.source else None) for c in changes],
        "blocked": [strings.place(clean(c.blocked) if c.blocked else None) for c in changes],
        "first": first,
    }


def _why(change: Change, plan: Plan, targets: Iterable[tuple[str, str]]) -> str:
    """Why it is made, and on what."""
    return listed([clean(why(change, plan)), *(f"{what} {target}" for what, target in targets)])


def _fields(plan: Plan, changes: Sequence[Change], strings: Strings) -> dict[str, list[int]]:
    denied = fields_denied(plan)
    columns: dict[str, list[int]] = {
        name: [] for name in ("path", "op", "before", "after", "note", "risk", "cause")
    }
    for change in changes:
        stays = denied.get(str(change.id), ())
        adopted = adopted_fields(change)
        for item in change.fields:
            before, after = _sides(change, item)
            columns["path"].append(strings.place(clean(key_of(item.path))))
            columns["op"].append(strings.place(None if item.op is FieldOp.CHANGE else item.op.value))
            columns["before"].append(strings.place(before))
            columns["after"].append(strings.place(after))
            note = listed(["adopt" if item.path in adopted else "", _note(item, stays)])
            columns["note"].append(strings.place(note or None))
            columns["risk"].append(RISKS.index(item.risk))
            columns["cause"].append(strings.place(clean(item.cause) or None))
    return columns


def _sides(change: Change, field: FieldChange) -> tuple[str | None, str | None]:
    """Of what comes or goes as a whole there is one side only."""
    if change.action is Action.UPDATE:
        return show(field.before, field.path), show(field.after, field.path)
    side = show(one_side(change, field), field.path)
    return (None, side) if change.action is Action.CREATE else (side, None)


def _note(field: FieldChange, denied: Collection[str]) -> str:
    if field.path in denied:
        return "denied"
    if field.op is FieldOp.DELETE and field.after is None:
        return "back to the default"
    return parts_of(field)


def _verdicts(plan: Plan, strings: Strings) -> dict[str, list[int]]:
    """Those that say more than yes."""
    found = spoken(plan.verdicts)
    return {
        "resource": [strings.place(clean(verdict.resource)) for verdict in found],
        "judgement": [strings.place(judgement(verdict)) for verdict in found],
        "text": [strings.place("\n".join(verdict_lines([verdict]))) for verdict in found],
    }


def _operations(
    operations: Sequence[Operation], changes: Mapping[str, int], strings: Strings
) -> dict[str, list[int]]:
    """``change``: the place of what it belongs to, -1 for steps of the engine's own make."""
    return {
        "change": [changes.get(str(op.resource), -1) for op in operations],
        "verb": [strings.place(clean(op.verb)) for op in operations],
        "kind": [strings.place(clean(op.resource.kind)) for op in operations],
        "name": [strings.place(clean(op.resource.name)) for op in operations],
        "irreversible": [strings.place(_or_none(op.irreversible)) for op in operations],
    }


def _or_none(text: str | None) -> str | None:
    return clean(text) if text else None


def _after(operations: Sequence[Operation], strings: Strings) -> list[list[int]]:
    place = {op.id: number for number, op in enumerate(operations)}
    return [
        [part for id_ in sorted(op.after) if id_ in place
         for part in (place[id_], strings.place(clean(op.after[id_])))]
        for op in operations
    ]  # fmt: skip


def _graph(drawn: Drawing, strings: Strings) -> dict[str, Any]:
    return {
        "nodes": [
            [n.column, n.row, strings.place(clean(n.verb)), strings.place(clean(n.kind)), int(n.critical)]
            for n in drawn.nodes
        ],
        "members": [list(n.operations) for n in drawn.nodes],
        "edges": [[e.source, e.target, e.count, int(e.critical)] for e in drawn.edges],
        "columns": [list(steps) for steps in drawn.columns],
        "critical": list(drawn.critical),
    }


def _moves(plan: Plan, strings: Strings) -> dict[str, Any] | None:
    """``cells``: topic, broker, replicas before and after, and of them those that lead, in one list each."""
    found = assignments_of(plan.operations, plan.racks)
    if found is None:
        return None
    racks = (found.racks.get(broker) for broker in found.brokers)
    return {
        "brokers": list(found.brokers),
        "racks": [strings.place(None if rack is None else clean(rack)) for rack in racks],
        "topics": [strings.place(None if topic is None else clean(topic)) for topic in found.topics],
        "cells": [
            [topic, broker, held.before, held.after, held.leads_before, held.leads_after]
            for (topic, broker), held in found.held.items()
        ],
        "partitions": found.partitions,
        "copied": found.copied,
        "narrowed": found.narrowed,
        "others": found.others,
        "unplaced": found.unplaced,
    }


NAMED = 100
"""So many topics have a row of their own; the others share one."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one broker holds of a topic: replicas, and those of them that come first and are to lead."""

    before: int = 0
    after: int = 0
    leads_before: int = 0
    leads_after: int = 0


@dataclass(frozen=True, slots=True)
class Assignments:
    """The partitions that a plan places, and who holds them.

    brokers: by rack and id. topics: those with the most replicas to copy first; None stands for all that
    have no row of their own, ``others`` of them. held: by the places of topic and broker.
    partitions: how many are placed. copied: replicas on brokers that had none.
    narrowed: partitions that are on fewer racks than before. unplaced: new topics that the brokers place.
    """

    brokers: tuple[int, ...]
    racks: Mapping[int, str]
    topics: tuple[str | None, ...]
    held: Mapping[tuple[int, int], Held]
    partitions: int
    copied: int
    narrowed: int
    others: int
    unplaced: int


@dataclass(slots=True)
class _Tally:
    before: Counter[int] = field(default_factory=Counter)
    after: Counter[int] = field(default_factory=Counter)
    leads_before: Counter[int] = field(default_factory=Counter)
    leads_after: Counter[int] = field(default_factory=Counter)
    copied: int = 0

    def add(self, before: Sequence[int], after: Sequence[int]) -> None:
        """One partition."""
        self.before.update(before)
        self.after.update(after)
        self.leads_before.update(before[:1])
        self.leads_after.update(after[:1])
        self.copied += len(set(after) - set(before))

    def join(self, other: "_Tally") -> None:
        """Another topic."""
        self.before += other.before
        self.after += other.after
        self.leads_before += other.leads_before
        self.leads_after += other.leads_after
        self.copied += other.copied

    def held(self, broker: int) -> Held:
        """What it comes to on one broker."""
        leads = self.leads_before[broker], self.leads_after[broker]
        return Held(self.before[broker], self.after[broker], *leads)


def assignments_of(operations: Iterable[Operation], racks: Mapping[int, str]) -> Assignments | None:
    """What operations make of replicas; None where they name none. racks: of brokers, as far as known."""
    placed, unplaced = _placed(operations)
    if not placed:
        return None
    tallies: dict[str, _Tally] = {}
    narrowed = 0
    for (topic, _), (before, after) in placed.items():
        tallies.setdefault(topic, _Tally()).add(before, after)
        narrowed += _is_narrowed(before, after, racks)
    order = sorted(tallies, key=lambda topic: (-tallies[topic].copied, topic))
    named = order if len(order) <= NAMED + 1 else order[:NAMED]
    rest = _Tally()
    for topic in order[len(named) :]:
        rest.join(tallies[topic])
    rows: dict[str | None, _Tally] = {topic: tallies[topic] for topic in named}
    if len(order) > len(named):
        rows[None] = rest
    known = {*racks, *(b for before, after in placed.values() for b in (*before, *after))}
    brokers = sorted(known, key=lambda b: (b not in racks, racks.get(b, ""), b))
    held = {(t, b): row.held(id_) for t, row in enumerate(rows.values()) for b, id_ in enumerate(brokers)}
    return Assignments(
        brokers=tuple(brokers),
        racks=racks,
        topics=tuple(rows),
        held={place: found for place, found in held.items() if found != Held()},
        partitions=len(placed),
        copied=sum(tally.copied for tally in tallies.values()),
        narrowed=narrowed,
        others=len(order) - len(named),
        unplaced=unplaced,
    )


_Placed = dict[tuple[str, int], tuple[Sequence[int], Sequence[int]]]


def _placed(operations: Iterable[Operation]) -> tuple[_Placed, int]:
    """Replicas before and after by topic and partition, and how many new topics say nothing of theirs."""
    found: _Placed = {}
    unplaced = 0
    for op in operations:
        placements = type_of(op).list_placements(op)
        if placements is None:
            continue
        unplaced += not placements
        for item in placements:
            place = item.name, item.number
            first, _ = found.get(place, (item.before, item.after))  # of two moves, the first knows what was
            found[place] = first, item.after
    return found, unplaced


def _is_narrowed(before: Sequence[int], after: Sequence[int], racks: Mapping[int, str]) -> bool:
    """Whether the loss of one rack takes more of it than before; a broker without a rack tells nothing."""
    if not before or not {*before, *after} <= racks.keys():
        return False
    return len({racks[b] for b in after}) < len({racks[b] for b in before})
