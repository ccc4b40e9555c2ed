"""Build the data that is embedded in the HTML pages of plans and runs.

The data consists of table columns, which contain indexes into one list of strings. Values are formatted as in
the text output of a plan (`values.format_value`), so that a page contains no secrets and no hashes of
secrets.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.report.elements.diagnostics_text import (
    get_verdict_label,
    render_verdict_lines,
    select_notable_verdicts,
)
from kdeclare.report.elements.html_page import StringTable
from kdeclare.report.elements.values import (
    format_value,
    join_nonempty,
    sanitize_for_terminal,
    strip_configs_prefix,
)
from kdeclare.report.outcome import find_denied_fields
from kdeclare.report.plan.plan_graph import GraphLayout, build_graph_layout
from kdeclare.report.plan.plan_text import (
    explain_change,
    find_adopted_fields,
    find_targets,
    format_list_edits,
    get_icon,
    get_only_value,
    has_both_values,
)
from kdeclare.report.plan.risks import sort_by_risk
from kdeclare.version import VERSION

ACTION_LABELS: Mapping[Action, tuple[str, str]] = {
    Action.CREATE: ("create", "does not exist yet"),
    Action.UPDATE: ("change", "exists, but differs"),
    Action.DELETE: ("delete", "deleted, including any data"),
    Action.REPLACE: ("replace", "deleted, including any data, then created again"),
    Action.FORGET: ("forget", "released, kept in the cluster"),
    Action.NO_OP: ("orphaned", "owned, no longer declared, left unchanged"),
}
"""The label and the explanation of each action on the page."""

RISKS_BY_SEVERITY = (*reversed(Risk),)


def build_body_data(
    plan: Plan, strings: StringTable, seconds: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Build the data that the page of a plan and the page of a run have in common.

    Most columns of ``changes``, ``fields`` and ``operations`` contain indexes into ``strings``, or -1 if
    there is no text. Exceptions:

    - actions and risks are indexes into ``actions`` and ``risks``
    - ``first`` is the index of the first field of a change
    - ``after`` has a list for each operation: the index of a predecessor, the index of the reason for the
        order, the index of the next predecessor, and so on
    """
    changes = order_changes(plan)
    change_indexes = {str(change.id): number for number, change in enumerate(changes)}
    return {
        "version": VERSION,
        "actions": [list(words) for words in ACTION_LABELS.values()],
        "risks": [risk.value for risk in RISKS_BY_SEVERITY],
        "changes": _build_change_columns(plan, changes, strings),
        "fields": _build_field_columns(plan, changes, strings),
        "verdicts": _build_verdict_columns(plan, strings),
        "operations": _build_operation_columns(plan.operations, change_indexes, strings),
        "after": _build_predecessor_lists(plan.operations, strings),
        "graph": _build_graph_data(build_graph_layout(plan.operations, seconds), strings),
        "moves": _build_move_data(plan, strings),
    }


def order_changes(plan: Plan) -> list[Change]:
    """Return the changes, the riskiest first, followed by the orphans."""
    active_changes = sort_by_risk(change for change in plan.changes if change.action is not Action.NO_OP)
    return [*active_changes, *(change for change in plan.changes if change.action is Action.NO_OP)]


def _build_change_columns(
    plan: Plan, changes: Sequence[Change], strings: StringTable
) -> dict[str, list[Any]]:
    actions, targets = list(ACTION_LABELS), find_targets(plan)
    first_field_indexes = [0]
    for change in changes:
        first_field_indexes.append(first_field_indexes[-1] + len(change.fields))
    return {
        "action": [actions.index(change.action) for change in changes],
        "risks": [[RISKS_BY_SEVERITY.index(risk) for risk in change.risks] for change in changes],
        "kind": [strings.place(sanitize_for_terminal(change.id.kind)) for change in changes],
        "name": [strings.place(sanitize_for_terminal(change.id.name)) for change in changes],
        "icon": [strings.place(get_icon(change)) for change in changes],
        "why": [
            strings.place(_format_reason(change, plan, targets.get(str(change.id), ())) or None)
            for change in changes
        ],
        "source": [
            strings.place(sanitize_for_terminal(str(c.source)) if c.source else None) for c in changes
        ],
        "blocked": [strings.place(sanitize_for_terminal(c.blocked) if c.blocked else None) for c in changes],
        "owner": [strings.place(_sanitize_optional(c.owner)) for c in changes],
        "description": [strings.place(_sanitize_optional(c.description)) for c in changes],
        "first": first_field_indexes,
    }


def _format_reason(change: Change, plan: Plan, targets: Iterable[tuple[str, str]]) -> str:
    """Return the reason for a change, and where its operations are sent, as one string."""
    return join_nonempty(
        [
            sanitize_for_terminal(explain_change(change, plan)),
            *(f"{what} {target}" for what, target in targets),
        ]
    )


def _build_field_columns(plan: Plan, changes: Sequence[Change], strings: StringTable) -> dict[str, list[int]]:
    denied_fields = find_denied_fields(plan)
    columns: dict[str, list[int]] = {
        name: [] for name in ("path", "op", "before", "after", "note", "risk", "cause")
    }
    for change in changes:
        denied_paths = denied_fields.get(str(change.id), ())
        adopted_paths = find_adopted_fields(change)
        for item in change.fields:
            before, after = format_field_sides(change, item)
            columns["path"].append(strings.place(sanitize_for_terminal(strip_configs_prefix(item.path))))
            columns["op"].append(strings.place(None if item.op is FieldOp.CHANGE else item.op.value))
            columns["before"].append(strings.place(before))
            columns["after"].append(strings.place(after))
            note = join_nonempty(
                ["adopt" if item.path in adopted_paths else "", _format_note(item, denied_paths)]
            )
            columns["note"].append(strings.place(note or None))
            columns["risk"].append(RISKS_BY_SEVERITY.index(item.risk))
            columns["cause"].append(strings.place(sanitize_for_terminal(item.cause) or None))
    return columns


def format_field_sides(change: Change, field: FieldChange) -> tuple[str | None, str | None]:
    """Return the values of a field before and after the change.

    The first value is None if the change creates the resource. The second value is None if the change removes
    the resource.
    """
    if has_both_values(change):
        return format_value(field.before, field.path), format_value(field.after, field.path)
    side = format_value(get_only_value(change, field), field.path)
    return (None, side) if change.action in (Action.CREATE, Action.REPLACE) else (side, None)


def _format_note(field: FieldChange, denied_paths: Collection[str]) -> str:
    if field.path in denied_paths:
        return "denied"
    if field.op is FieldOp.DELETE and field.after is None:
        return "back to the default"
    return format_list_edits(field)


def _build_verdict_columns(plan: Plan, strings: StringTable) -> dict[str, list[int]]:
    """Build the columns for denials, overridden denials and warnings."""
    notable_verdicts = select_notable_verdicts(plan.verdicts)
    return {
        "resource": [strings.place(sanitize_for_terminal(verdict.resource)) for verdict in notable_verdicts],
        "judgement": [strings.place(get_verdict_label(verdict)) for verdict in notable_verdicts],
        "text": [strings.place("\n".join(render_verdict_lines([verdict]))) for verdict in notable_verdicts],
    }


def _build_operation_columns(
    operations: Sequence[Operation], change_indexes: Mapping[str, int], strings: StringTable
) -> dict[str, list[int]]:
    """Build the columns for operations. The column ``change`` contains the index of the operation's change.

    The index is -1 for an operation that the engine added and that does not belong to a change.
    """
    return {
        "change": [change_indexes.get(str(op.resource), -1) for op in operations],
        "verb": [strings.place(sanitize_for_terminal(op.verb)) for op in operations],
        "kind": [strings.place(sanitize_for_terminal(op.resource.kind)) for op in operations],
        "name": [strings.place(sanitize_for_terminal(op.resource.name)) for op in operations],
        "irreversible": [strings.place(_sanitize_optional(op.irreversible)) for op in operations],
    }


def _sanitize_optional(text: str | None) -> str | None:
    return sanitize_for_terminal(text) if text else None


def _build_predecessor_lists(operations: Sequence[Operation], strings: StringTable) -> list[list[int]]:
    positions = {op.id: number for number, op in enumerate(operations)}
    return [
        [part for id_ in sorted(op.after) if id_ in positions
         for part in (positions[id_], strings.place(sanitize_for_terminal(op.after[id_])))]
        for op in operations
    ]  # fmt: skip


def _build_graph_data(layout: GraphLayout, strings: StringTable) -> dict[str, Any]:
    return {
        "nodes": [
            [
                n.column,
                n.row,
                strings.place(sanitize_for_terminal(n.verb)),
                strings.place(sanitize_for_terminal(n.kind)),
                int(n.critical),
            ]
            for n in layout.nodes
        ],
        "members": [list(n.operations) for n in layout.nodes],
        "edges": [[e.source, e.target, e.count, int(e.critical)] for e in layout.edges],
        "columns": [list(steps) for steps in layout.columns],
        "critical": list(layout.critical),
    }


def _build_move_data(plan: Plan, strings: StringTable) -> dict[str, Any] | None:
    """Build the data of the map of replicas. Return None if the plan does not place replicas.

    Each element of ``cells`` is a list: the index of the topic, the index of the broker, the number of
        replicas before and after, and the number of preferred leaders before and after.
    """
    assignments = summarize_assignments(plan.operations, plan.racks)
    if assignments is None:
        return None
    racks = (assignments.racks.get(broker) for broker in assignments.brokers)
    return {
        "brokers": list(assignments.brokers),
        "racks": [strings.place(None if rack is None else sanitize_for_terminal(rack)) for rack in racks],
        "topics": [
            strings.place(None if topic is None else sanitize_for_terminal(topic))
            for topic in assignments.topics
        ],
        "cells": [
            [topic, broker, held.before, held.after, held.leads_before, held.leads_after]
            for (topic, broker), held in assignments.held.items()
        ],
        "partitions": assignments.partitions,
        "copied": assignments.copied,
        "narrowed": assignments.narrowed_count,
        "others": assignments.others,
        "unplaced": assignments.unplaced_count,
    }


MAX_TOPIC_ROWS = 100
"""The maximum number of topics with their own row. All other topics share one row."""


@dataclass(frozen=True, slots=True)
class BrokerReplicas:
    """The number of replicas and of preferred leaders of a topic on one broker, before and after the plan."""

    before: int = 0
    after: int = 0
    leads_before: int = 0
    leads_after: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaAssignments:
    """A summary of the replicas that a plan places on brokers.

    brokers: the broker ids, sorted by rack and id.
    racks: the known racks by broker id.
    topics: the topics with their own row, sorted by the number of replicas to copy, highest first. None
        stands for the row that all other topics share.
    held: the counts of replicas by the index of the topic and the index of the broker.
    partitions: the number of partitions whose replicas are placed.
    copied: the number of replicas on brokers that had no replica of the partition before.
    narrowed_count: the number of partitions that will be on fewer racks than before.
    others: the number of topics that share one row.
    unplaced_count: the number of new topics for which the brokers choose the placement.
    """

    brokers: tuple[int, ...]
    racks: Mapping[int, str]
    topics: tuple[str | None, ...]
    held: Mapping[tuple[int, int], BrokerReplicas]
    partitions: int
    copied: int
    narrowed_count: int
    others: int
    unplaced_count: int


@dataclass(slots=True)
class _ReplicaTally:
    before: Counter[int] = field(default_factory=Counter)
    after: Counter[int] = field(default_factory=Counter)
    leads_before: Counter[int] = field(default_factory=Counter)
    leads_after: Counter[int] = field(default_factory=Counter)
    copied: int = 0

    def add(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Count the replicas of one partition.

        before, after: the ids of the brokers that host the replicas before and after the plan.
        """
        self.before.update(before)
        self.after.update(after)
        self.leads_before.update(before[:1])
        self.leads_after.update(after[:1])
        self.copied += len(set(after) - set(before))

    def join(self, other: "_ReplicaTally") -> None:
        """Add the counts of another topic to these counts, for the row that several topics share."""
        self.before += other.before
        self.after += other.after
        self.leads_before += other.leads_before
        self.leads_after += other.leads_after
        self.copied += other.copied

    def held(self, broker: int) -> BrokerReplicas:
        """Return the number of replicas and of preferred leaders on one broker, before and after the plan."""
        leads = self.leads_before[broker], self.leads_after[broker]
        return BrokerReplicas(self.before[broker], self.after[broker], *leads)


def summarize_assignments(
    operations: Iterable[Operation], racks: Mapping[int, str]
) -> ReplicaAssignments | None:
    """Summarize the replicas that the operations place. Return None if the operations do not place replicas.

    racks: the known racks by broker id.
    """
    placements, unplaced_count = _collect_placements(operations)
    if not placements:
        return None
    tallies: dict[str, _ReplicaTally] = {}
    narrowed_count = 0
    for (topic, _), (before, after) in placements.items():
        tallies.setdefault(topic, _ReplicaTally()).add(before, after)
        narrowed_count += _is_narrowed(before, after, racks)
    ordered_topics = sorted(tallies, key=lambda topic: (-tallies[topic].copied, topic))
    listed_topics = (
        ordered_topics if len(ordered_topics) <= MAX_TOPIC_ROWS + 1 else ordered_topics[:MAX_TOPIC_ROWS]
    )
    other_topics = _ReplicaTally()
    for topic in ordered_topics[len(listed_topics) :]:
        other_topics.join(tallies[topic])
    rows: dict[str | None, _ReplicaTally] = {topic: tallies[topic] for topic in listed_topics}
    if len(ordered_topics) > len(listed_topics):
        rows[None] = other_topics
    broker_ids = {*racks, *(b for before, after in placements.values() for b in (*before, *after))}
    brokers = sorted(broker_ids, key=lambda b: (b not in racks, racks.get(b, ""), b))
    replicas_by_cell = {
        (t, b): row.held(id_) for t, row in enumerate(rows.values()) for b, id_ in enumerate(brokers)
    }
    return ReplicaAssignments(
        brokers=tuple(brokers),
        racks=racks,
        topics=tuple(rows),
        held={place: found for place, found in replicas_by_cell.items() if found != BrokerReplicas()},
        partitions=len(placements),
        copied=sum(tally.copied for tally in tallies.values()),
        narrowed_count=narrowed_count,
        others=len(ordered_topics) - len(listed_topics),
        unplaced_count=unplaced_count,
    )


_PlacementsByPartition = dict[tuple[str, int], tuple[Sequence[int], Sequence[int]]]


def _collect_placements(operations: Iterable[Operation]) -> tuple[_PlacementsByPartition, int]:
    """Return the replicas of each partition before and after the plan, by topic and partition number.

    Also return the number of new topics for which the brokers choose the placement.
    """
    by_partition: _PlacementsByPartition = {}
    unplaced_count = 0
    for op in operations:
        placements = get_operation_type(op).list_placements(op)
        if placements is None:
            continue
        unplaced_count += not placements
        for item in placements:
            partition = item.name, item.number
            # If a partition is moved twice, only the first move starts from the current replicas.
            original, _ = by_partition.get(partition, (item.before, item.after))
            by_partition[partition] = original, item.after
    return by_partition, unplaced_count


def _is_narrowed(before: Sequence[int], after: Sequence[int], racks: Mapping[int, str]) -> bool:
    """Whether a plan reduces the number of racks with replicas of a partition.

    False if the rack of a broker is unknown, or if the partition had no replicas before.
    """
    if not before or not {*before, *after} <= racks.keys():
        return False
    return len({racks[b] for b in after}) < len({racks[b] for b in before})
