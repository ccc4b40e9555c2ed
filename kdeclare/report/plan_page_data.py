"""What the page of a plan embeds, and that of a run: columns of numbers that point to texts.

Values are texts as people read them everywhere (`values.show`), so that no page knows more than the text of
a plan: neither a secret nor what stands for one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kdeclare.core.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.core.operations import Operation
from kdeclare.core.plan import Plan
from kdeclare.report.denials import fields_denied
from kdeclare.report.html_page import Strings
from kdeclare.report.plan_assignments import assignments_of
from kdeclare.report.plan_graph import Drawing, drawing
from kdeclare.report.plan_text import adopted_fields, find_targets, icon, one_side, parts_of, why
from kdeclare.report.risks import by_risk
from kdeclare.report.values import clean, key_of, listed, show
from kdeclare.report.verdicts_text import judgement, spoken, verdict_lines
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
        for field in change.fields:
            before, after = _sides(change, field)
            columns["path"].append(strings.place(clean(key_of(field.path))))
            columns["op"].append(strings.place(None if field.op is FieldOp.CHANGE else field.op.value))
            columns["before"].append(strings.place(before))
            columns["after"].append(strings.place(after))
            note = listed(["adopt" if field.path in adopted else "", _note(field, stays)])
            columns["note"].append(strings.place(note or None))
            columns["risk"].append(RISKS.index(field.risk))
            columns["cause"].append(strings.place(clean(field.cause) or None))
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
