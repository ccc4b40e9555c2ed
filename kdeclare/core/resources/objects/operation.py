"""The operations that create, update, delete, and clean up objects."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Protocol

from kdeclare.core.jsontypes import JsonValue, as_texts
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, Outcome
from kdeclare.core.operations.completion import Completion
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import Action, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.objects.values import (
    EXISTS,
    Fields,
    ObjectArgs,
    ObjectValue,
    ObjectWrite,
    get_object_args,
    mask_secret,
    to_mark,
)
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import is_mark, mark_value
from kdeclare.core.secrets.secret_refs import (
    Secret,
    SecretRef,
    SecretSource,
    ValuePath,
)


class ObjectStore(Protocol):
    """The methods of `ObjectKind` that the operations on its objects need."""

    name: str
    references: Mapping[str, str]
    completion: Completion | None

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Return the selections for reading an object."""
        ...

    def read(self, live: LiveState) -> Mapping[str, Fields]:
        """Return the fields of the live objects, by object name."""
        ...

    def write(
        self, connections: Connections, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> Sequence[Outcome]:
        """Execute or validate all writes, and return an outcome for each write. Raises Fault."""
        ...

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Explain a fault that an operation reported; see `OperationType`."""
        ...

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Return the pending cleanup after an operation; see `OperationType`."""
        ...


class ObjectOperation(OperationType):
    """Creates, updates or deletes one object."""

    arguments = ObjectArgs
    validates = True

    def __init__(self, kind: ObjectStore, action: Action, *, is_cleanup: bool = False) -> None:
        """Create the operation type for an action.

        is_cleanup: whether the operations clean up after earlier runs.
        """
        self._kind = kind
        self.name = _format_type_name(kind.name, "tidy" if is_cleanup else action)
        self.creates, self.deletes = action is Action.CREATE, action is Action.DELETE
        self.is_auxiliary = self.is_cleanup = is_cleanup
        self.completion = None if self.deletes or is_cleanup else kind.completion

    def select(self, op: Operation) -> Selections:
        """Return the selections that the kind needs to read the object."""
        return self._kind.select(op.resource.name, None, None)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the fields of the object, and whether the object exists.

        Secrets are represented by hashes.
        """
        live_fields = self._kind.read(live).get(op.resource.name)
        elements: dict[str, JsonValue] = {EXISTS: live_fields is not None}
        args = get_object_args(op)
        for name in args.set:
            value = (live_fields or {}).get(name)
            if isinstance(value, Secret):
                records = (args.set[name], args.was.get(name))
                known_hashes = [record.secret for record in records if isinstance(record, SecretRef)]
                value = mark_value(str(op.resource), name, value.value, known_hashes)
            elements[name] = value
        return elements

    def expected_state(self, op: Operation) -> View:
        """Return the view of the object after the operation."""
        fields = {name: to_mark(value) for name, value in get_object_args(op).set.items()}
        return {EXISTS: not self.deletes, **fields}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field change for each field that the operation sets; none if it deletes the object."""
        after = {} if self.deletes else get_object_args(op).set
        return tuple(
            FieldChange(name, FieldOp.CHANGE, mask_secret(op.expect.get(name)), mask_secret(value))
            for name, value in after.items()
        )

    def less(self, op: Operation, subjects: Set[ResourceId]) -> Operation | None:
        """Return None if ``subjects`` contains the object of ``op``; otherwise ``op`` itself.

        No part of the operation can be left out, because an object is always written as a whole.
        """
        return None if op.resource in subjects else op

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the name of the object's field that the argument at the path ``at`` belongs to."""
        return str(at[1]) if len(at) > 1 else super().find_element(op, at)

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return ``op`` without the given fields; None if ``op`` creates the object or no field is left."""
        args = get_object_args(op)
        left = {name: value for name, value in args.set.items() if name not in elements}
        if self.creates or not left:
            return None
        expect = {name: value for name, value in op.expect.items() if name not in elements}
        return replace(op, args=replace(args, set=left), expect=expect)

    def is_confined(self, op: Operation) -> bool:
        """Whether ``op`` affects only its own resource.

        This is the case if ``op.resource`` is of the kind whose objects this operation type changes.
        """
        return op.resource.kind == self._kind.name

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim for the existence of the object, and one for each field."""
        return {element: f"{op.resource}/{element}" for element in (EXISTS, *get_object_args(op).set)}

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return the object, and the objects that its fields refer to before or after the operation."""
        required = self._find_references(get_object_args(op).set)
        released = self._find_references(op.expect) - required
        own_access = Access.CREATE if self.creates else Access.DELETE if self.deletes else Access.UPDATE
        return (
            FootprintEntry(op.resource.kind, op.resource.name, own_access),
            *(FootprintEntry(id_.kind, id_.name, Access.REQUIRES) for id_ in sorted(required)),
            *(FootprintEntry(id_.kind, id_.name, Access.AFTER) for id_ in sorted(released)),
        )

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """See `ObjectStore`."""
        return self._kind.explain(op, fault)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Execute or validate the operations. The requests contain the values of secrets."""
        writes = []
        for op in ops:
            field_items = get_object_args(op).set.items()
            fields = {n: secrets.reveal(v) if isinstance(v, SecretRef) else v for n, v in field_items}
            writes.append(ObjectWrite(op.resource, None if self.deletes else fields, self.creates))
        outcomes = self._kind.write(connections, writes, validate_only=validate_only)
        return {op.id: outcome for op, outcome in zip(ops, outcomes, strict=True)}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Restore the earlier value of each field that still has the value that the operation wrote."""
        before, after, args = op.expect, self.expected_state(op), get_object_args(op)
        if now == before:
            return UndoResult()
        conflicts = tuple(e for e in now if now[e] not in (before.get(e), after.get(e)))
        if self.creates:
            if not now[EXISTS] or conflicts:
                return UndoResult(conflicts=conflicts)
            secrets = {name: value for name, value in args.set.items() if isinstance(value, SecretRef)}
            return UndoResult(
                _format_type_name(self._kind.name, Action.DELETE),
                ObjectArgs(dict.fromkeys(args.set), secrets),
            )
        names = [name for name in args.set if now[name] == after[name] != before.get(name)]
        resolvable_refs = {name: ref for name, ref in args.was.items() if ref.reference is not None}
        lost_fields = tuple(
            name for name in names if is_mark(before.get(name)) and name not in resolvable_refs
        )
        restored = {
            name: resolvable_refs.get(name, before.get(name)) for name in names if name not in lost_fields
        }
        if self.deletes:
            recreated_args = ObjectArgs(
                {name: value for name, value in restored.items() if value is not None}
            )
            return UndoResult(
                _format_type_name(self._kind.name, Action.CREATE),
                None if lost_fields or conflicts else recreated_args,
                conflicts,
                lost_fields,
            )
        replaced_secrets = {
            name: value for name in restored if isinstance(value := args.set[name], SecretRef)
        }
        return UndoResult(
            self.name, ObjectArgs(restored, replaced_secrets) if restored else None, conflicts, lost_fields
        )

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """See `ObjectStore`."""
        return self._kind.update_cleanup(op, status, before)

    def _find_references(self, fields: Mapping[str, ObjectValue]) -> frozenset[ResourceId]:
        return frozenset(
            ResourceId(kind, name)
            for stated, kind in self._kind.references.items()
            for name in _list_names(fields.get(stated))
        )


def _list_names(value: ObjectValue) -> Sequence[str]:
    if isinstance(value, SecretRef) or not value:
        return ()
    return (value,) if isinstance(value, str) else as_texts(value)


def get_fields(op: Operation) -> Mapping[str, ObjectValue]:
    """Return the fields that an `ObjectOperation` writes. Raises TypeError for any other operation."""
    return get_object_args(op).set


def _format_type_name(kind: str, verb: str) -> str:
    return f"{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '-', kind).lower()}.{verb}"
