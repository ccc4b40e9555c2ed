"""The operation types `group.alter-offsets` and `group.delete`.

A view contains the state of the group (``inactive``, ``active`` or ``absent``) and the committed offset of
each partition.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.consumer_group.arguments import AlterOffsetsArgs, DeleteGroupArgs, OffsetChange
from kdeclare.providers.kafka.consumer_group.collector import (
    GroupSelection,
    GroupsState,
    LiveGroup,
    read_groups,
)
from kdeclare.providers.kafka.consumer_group.group import KIND, CommittedOffset
from kdeclare.providers.kafka.consumer_group.port import (
    GROUP_ID_NOT_FOUND,
    NON_EMPTY_GROUP,
    UNKNOWN_MEMBER_ID,
)
from kdeclare.providers.kafka.consumer_group.refusals import (
    describe_right,
    explain_refused_deletion,
    merge_offset_results,
)
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType

OFFSETS_FIELD_PREFIX = "offsets."
STATE = "state"
"""The element of a view that contains the state of the group."""
INACTIVE, ACTIVE, ABSENT = "inactive", "active", "absent"
_PARTITIONS = "partitions"
"""The element of a view that lists the partitions with committed offsets. No partition can have this name."""
_OBJECT = "kafka.group"
"""The object type of groups in footprints."""
_CONFLICT = "conflict"
"""The code of diagnostics for changes that a rollback does not undo."""
_ACTIVE_ERRORS = frozenset(
    {NON_EMPTY_GROUP, UNKNOWN_MEMBER_ID, "GROUP_SUBSCRIBED_TO_TOPIC", "REBALANCE_IN_PROGRESS"}
)
"""Kafka's errors for changes to a group that has members."""
STOP_HINT = "Stop all members of the group, and run the command again."


def describe_state(live: LiveGroup | None) -> str:
    """Return the state of a group in the format of views."""
    if live is None or live.group.state == "Dead":
        return ABSENT
    return ACTIVE if live.group.is_active else INACTIVE


class GroupOperationType(KafkaOperationType):
    """The base class of operation types that change one group."""

    is_shown_late = False

    def find_right(self, op: Operation) -> str:
        """Return the required permission. Subclasses implement this."""
        raise NotImplementedError

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that lists the group as updated."""
        return [FootprintEntry(_OBJECT, _get_group(op), Access.UPDATE)]

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the group as the only policy subject, because the operation does not change topics."""
        return frozenset({op.resource})

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return the group."""
        return frozenset({op.resource})

    def select(self, op: Operation) -> Selections:
        """Select the group."""
        return (GroupSelection(frozenset({_get_group(op)})),)

    def get_batch_key(self, op: Operation) -> str:
        """Return the id of the group."""
        return _get_group(op)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Explain a fault. Brokers refuse changes to a group that has members.

        If the error is that the group does not exist, the explanation says that it was already deleted.
        """
        if fault.error in _ACTIVE_ERRORS:
            return Explanation(hint=f"The group has members. {STOP_HINT}")
        if fault.error == GROUP_ID_NOT_FOUND:
            return Explanation(FaultCause.GONE_ALREADY)
        explanation = super().explain(op, fault)
        is_about_topic = explanation.cause is FaultCause.GONE_ALREADY  # the group still exists
        return Explanation() if is_about_topic else explanation

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim for each element of the view."""
        group = _get_group(op)
        return {element: f"groups/{group}/{element}" for element in self._list_elements(op)}

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Report groups that have members, because a rollback cannot change such groups."""
        live = read_groups(connections.get(KafkaConnection).cluster.groups, map(_get_group, ops)).groups
        return {op.id: _report_active(op) for op in ops if describe_state(live.get(_get_group(op))) == ACTIVE}

    def _list_elements(self, op: Operation) -> list[str]:
        raise NotImplementedError


class AlterOffsets(GroupOperationType):
    """The operation type that commits or deletes offsets of one group."""

    name = "group.alter-offsets"
    done_label = ("group with changed offsets", "groups with changed offsets")
    arguments = AlterOffsetsArgs

    def find_right(self, op: Operation) -> str:
        """Return the required permissions."""
        return describe_right(_get_group(op), _get_args(op).partitions)

    def is_confined(self, op: Operation) -> bool:
        """Return whether the arguments match the group of the resource and the expected offsets."""
        return op.resource == ResourceId(KIND, _get_args(op).group) and all(
            op.expect.get(name) == _get_number(change.before)
            for name, change in _get_args(op).partitions.items()
        )

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the group if the operation creates the group; otherwise None."""
        return op.resource if op.expect.get(STATE) == ABSENT else None

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the state of the group, and the committed offsets of the operation's partitions."""
        found = live.get(GroupsState).groups.get(_get_group(op))
        offsets = found.offsets if found else {}
        partitions = {
            name: _get_number(offsets.get(TopicPartition.parse(name))) for name in _get_args(op).partitions
        }
        return {STATE: describe_state(found), **partitions}

    def expected_state(self, op: Operation) -> View:
        """Return the expected view: the new offsets, and the state ``inactive``."""
        after = {name: _get_number(change.after) for name, change in _get_args(op).partitions.items()}
        return {**op.expect, STATE: INACTIVE, **after}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field per partition."""
        return tuple(
            FieldChange(
                OFFSETS_FIELD_PREFIX + name, FieldOp.CHANGE, op.expect.get(name), _get_number(change.after)
            )
            for name, change in _get_args(op).partitions.items()
        )

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return the operation without these partitions, or None if no partition is left."""
        remaining = {n: change for n, change in _get_args(op).partitions.items() if n not in elements}
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        return (
            replace(op, args=replace(_get_args(op), partitions=remaining), expect=expect)
            if remaining
            else None
        )

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims of the partitions."""
        return frozenset(claim for element, claim in self.claims(op).items() if element != STATE)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send OffsetCommit and OffsetDelete to the coordinators."""
        changes = {
            _get_group(op): {
                TopicPartition.parse(name): change.after for name, change in _get_args(op).partitions.items()
            }
            for op in ops
        }
        answers = connections.get(KafkaConnection).cluster.groups.alter_offsets(changes)
        results: dict[str, dict[TopicPartition, Result]] = {}
        for (group, where), result in answers.items():
            results.setdefault(group, {})[where] = result
        return {
            op.id: merge_offset_results(_get_group(op), _get_args(op).partitions, results[_get_group(op)])
            for op in ops
        }

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the changes that restore the earlier committed offsets.

        If the operation created the group, delete it. An offset that changed after the operation is not
        restored, but reported as a conflict.
        """
        expected = self.expected_state(op)
        undo: dict[str, OffsetChange] = {}
        conflicts: list[str] = []
        for name, change in _get_args(op).partitions.items():
            if now.get(name) == op.expect.get(name):
                continue
            if now.get(name) == expected[name]:
                undo[name] = change.invert()
            else:
                conflicts.append(name)
        if self.find_created_resource(op) is not None and undo and not conflicts:
            recorded = {name: change.before for name, change in undo.items() if change.before is not None}
            return UndoResult(DeleteGroup.name, DeleteGroupArgs(_get_group(op), recorded))
        args = AlterOffsetsArgs(_get_group(op), undo) if undo else None
        return UndoResult(self.name, args, tuple(conflicts))

    def _list_elements(self, op: Operation) -> list[str]:
        return [STATE, *_get_args(op).partitions]


class DeleteGroup(GroupOperationType):
    """The operation type that deletes a group with its committed offsets."""

    name = "group.delete"
    done_label = ("group deleted", "groups deleted")
    arguments = DeleteGroupArgs
    deletes = True
    contents = "offsets"

    def find_right(self, op: Operation) -> str:
        """Return the required permission."""
        return f"Delete on group {_get_group(op)}"

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that lists the group as deleted."""
        return [FootprintEntry(_OBJECT, _get_group(op), Access.DELETE)]

    def find_expected_objects(self, op: Operation) -> frozenset[ResourceId]:
        """Return an empty set, because groups have no ids except their names."""
        return frozenset()

    def is_confined(self, op: Operation) -> bool:
        """Return whether the arguments match the group of the resource and the expected offsets."""
        return op.resource == ResourceId(KIND, _get_group(op)) and all(
            op.expect.get(name) == offset.offset for name, offset in _get_delete_args(op).offsets.items()
        )

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the state of the group, its partitions, and the committed offsets to be deleted."""
        found = live.get(GroupsState).groups.get(_get_group(op))
        offsets = found.offsets if found else {}
        recorded: dict[str, JsonValue] = {
            name: _get_number(offsets.get(TopicPartition.parse(name)))
            for name in _get_delete_args(op).offsets
        }
        return {STATE: describe_state(found), _PARTITIONS: sorted(map(str, offsets)), **recorded}

    def expected_state(self, op: Operation) -> View:
        """Return a view in which the group is absent."""
        return {STATE: ABSENT, _PARTITIONS: [], **dict.fromkeys(_get_delete_args(op).offsets)}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field for each committed offset that the operation deletes."""
        return tuple(
            FieldChange(OFFSETS_FIELD_PREFIX + name, FieldOp.CHANGE, op.expect.get(name), None)
            for name in _get_delete_args(op).offsets
        )

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send DeleteGroups to the coordinators. If a group does not exist, its operation succeeds."""
        results = connections.get(KafkaConnection).cluster.groups.delete_groups(
            [_get_group(op) for op in ops]
        )
        return {
            op.id: explain_refused_deletion(group, _accept_missing(results[group]))
            for op in ops
            for group in [_get_group(op)]
        }

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Report groups that a rollback does not delete.

        These groups have members, or offsets that other clients committed.
        """
        live = read_groups(connections.get(KafkaConnection).cluster.groups, map(_get_group, ops)).groups
        kept: dict[str, Diagnostic] = {}
        for op in ops:
            found = live.get(_get_group(op))
            offsets = {} if found is None else {str(p): offset.offset for p, offset in found.offsets.items()}
            recorded = {name: offset.offset for name, offset in _get_delete_args(op).offsets.items()}
            if describe_state(found) == ACTIVE:
                kept[op.id] = _report_active(op)
            elif offsets != recorded:
                kept[op.id] = _report_other_offsets(op)
        return kept

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that commits the deleted offsets again.

        Offsets that other clients committed later are reported as conflicts.
        """
        undo: dict[str, OffsetChange] = {}
        conflicts: list[str] = []
        for name, offset in _get_delete_args(op).offsets.items():
            if now.get(name) is None:
                undo[name] = OffsetChange(offset, None)
            elif now[name] != offset.offset:
                conflicts.append(name)
        if not _get_delete_args(op).offsets and now.get(STATE) == ABSENT:
            return UndoResult(lost=("the empty group",))
        args = AlterOffsetsArgs(_get_group(op), undo) if undo else None
        return UndoResult(AlterOffsets.name, args, tuple(conflicts))

    def _list_elements(self, op: Operation) -> list[str]:
        return [STATE, _PARTITIONS, *_get_delete_args(op).offsets]


def _get_args(op: Operation) -> AlterOffsetsArgs:
    return get_arguments(op, AlterOffsetsArgs)


def _get_delete_args(op: Operation) -> DeleteGroupArgs:
    return get_arguments(op, DeleteGroupArgs)


def _get_group(op: Operation) -> str:
    args = op.args
    assert isinstance(args, AlterOffsetsArgs | DeleteGroupArgs)
    return args.group


def _get_number(offset: CommittedOffset | None) -> int | None:
    return None if offset is None else offset.offset


def _accept_missing(result: Result) -> Result:
    return None if result is not None and result.error == GROUP_ID_NOT_FOUND else result


def _report_active(op: Operation) -> Diagnostic:
    return warning(
        _CONFLICT,
        "Group is active",
        f"{op.resource} has members, so its offsets are left unchanged.",
        hint="Stop all members of the group, and roll back again.",
        resource=str(op.resource),
    )


def _report_other_offsets(op: Operation) -> Diagnostic:
    return warning(
        _CONFLICT,
        "Offsets were committed after the run",
        f"The run created {op.resource}, but other offsets have been committed since then. The rollback does "
        "not delete the group.",
        hint=f"Run kdeclare group delete {_get_group(op)} to delete the group anyway.",
        resource=str(op.resource),
    )
