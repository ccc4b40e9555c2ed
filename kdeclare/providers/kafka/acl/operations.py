"""The operation types `acls.create` and `acls.delete`, which are each other's inverse."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import lru_cache
from typing import Annotated
from zlib import crc32

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_FALSE, get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Arguments, Operation, UndoResult
from kdeclare.core.operations.operation_type import View, with_inverse
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource, ValuePath
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.acl.collector import AclSelection, AclState, require_visible
from kdeclare.providers.kafka.acl.diff import (
    MAX_CREATED,
    MAX_DELETED,
    Phase,
    build_phase_fields,
    find_phase,
    parse_field,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType
from kdeclare.providers.kafka.port import Cluster

KIND = "Acl"
ACL = "kafka.acl"
"""The object type of bindings in footprints. The name of an object is its binding in text format."""
SCRAM_USER = "ScramUser"
"""The object type of users in footprints."""
PRESENT, ABSENT = "present", "absent"


@dataclass(frozen=True, slots=True)
class AclArgs(Arguments):
    """The bindings to create or delete, in text format.

    whole: whether the operation belongs to the creation or the deletion of the whole resource. The creation
        or deletion can require several operations.
    roles: the manifest role that each binding was expanded from. Bindings without a role are omitted.
    """

    bindings: Annotated[tuple[str, ...], Field(min_length=1)]
    whole: Annotated[bool, OMIT_FALSE] = False
    roles: Annotated[Mapping[str, str], OMIT_EMPTY] = field(default_factory=dict)

    def keep(self, bindings: Sequence[str]) -> "AclArgs":
        """Return the arguments with only the given bindings."""
        kept = frozenset(bindings)
        roles = {text: role for text, role in self.roles.items() if text in kept}
        return replace(self, bindings=tuple(bindings), roles=roles)


@lru_cache(maxsize=65_536)
def _parse(text: str) -> Binding:
    return parse_binding(text)


def list_bindings(op: Operation) -> list[Binding]:
    """Return the bindings that an operation creates or deletes. Raises ValueError for damaged arguments."""
    return [_parse(text) for text in get_arguments(op, AclArgs).bindings]


def is_acl_operation(op: Operation) -> bool:
    """Return whether an operation creates or deletes bindings.

    Plans call this several times per operation, and `isinstance` with an operation type, which is a protocol,
    takes ten times as long as with a class of arguments.
    """
    return isinstance(op.args, AclArgs)


def is_acl_creation(op: Operation) -> bool:
    """Return whether an operation on bindings (`is_acl_operation`) creates them instead of deleting them."""
    return op.verb == CreateAcls.name


class _ChangeAcls(KafkaOperationType):
    """The base class of both operation types."""

    arguments = AclArgs
    deletion_risk = Risk.DISRUPTIVE
    is_creation: bool
    inverse_name: str

    def find_right(self, op: Operation) -> str:
        """Return the permission that the operation requires."""
        return "Alter on the cluster"

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that lists the bindings as updated.

        The principals and resources of a binding need not exist, so the footprint does not list them.
        """
        return [FootprintEntry(ACL, text, Access.UPDATE) for text in get_arguments(op, AclArgs).bindings]

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return only the Acl, because bindings are not a part of the topics that they apply to."""
        return frozenset({op.resource})

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return the resource of the operation."""
        return frozenset({op.resource})

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation belongs to an Acl."""
        return op.resource.kind == KIND

    def select(self, op: Operation) -> Selections:
        """Select the principals of the bindings."""
        return (AclSelection(frozenset(binding.principal for binding in list_bindings(op))),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return whether each binding exists. Raises Fault if the bindings could not be read."""
        state = require_visible(live.get(AclState))
        return {str(b): PRESENT if state.has(b) else ABSENT for b in list_bindings(op)}

    def expected_state(self, op: Operation) -> View:
        """Return which of the bindings exist after the operation."""
        return dict.fromkeys(get_arguments(op, AclArgs).bindings, PRESENT if self.is_creation else ABSENT)

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field change for each resource whose bindings change."""
        return tuple(build_phase_fields(self.is_creation, list_bindings(op), MAX_CREATED))

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the binding at a path in the arguments."""
        if at[0] == "bindings" and isinstance(at[1], int):
            return get_arguments(op, AclArgs).bindings[at[1]]
        return super().find_element(op, at)

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return the operation without these bindings, or None if no binding is left."""
        args = get_arguments(op, AclArgs)
        remaining = tuple(text for text in args.bindings if text not in elements)
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        return replace(op, args=args.keep(remaining), expect=expect) if remaining else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim for each binding."""
        return {text: f"acl/{text}" for text in get_arguments(op, AclArgs).bindings}

    def get_batch_key(self, op: Operation) -> str:
        """Return a batch key that limits a batch to about as many bindings as one operation can contain.

        Operations with the same key are in different batches. Without the limit, a batch could contain
        thousands of small operations, but a run shows progress and can be interrupted only between batches.
        """
        limit = MAX_CREATED if self.is_creation else MAX_DELETED
        keys = max(1, limit // len(get_arguments(op, AclArgs).bindings))
        return str(crc32(op.id.encode()) % keys)

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims of all bindings."""
        return frozenset(self.claims(op).values())

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Create or delete the bindings of all operations.

        Brokers cannot validate these requests in advance.
        """
        bindings = list(dict.fromkeys(binding for op in ops for binding in list_bindings(op)))
        results = self.get_sender(connections.get(KafkaConnection).cluster)(bindings)
        return {op.id: _find_fault(results[binding] for binding in list_bindings(op)) for op in ops}

    def get_sender(self, cluster: Cluster) -> Callable[[Sequence[Binding]], Mapping[Binding, Result]]:
        """Return the method of ``cluster`` with which bindings are created or deleted."""
        return cluster.create_acls if self.is_creation else cluster.delete_acls

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the inverse operation for all bindings that the operation changed.

        A binding that another client created or deleted after the operation is left unchanged.
        """
        expected = self.expected_state(op)
        changed = [text for text in expected if op.expect.get(text) != expected[text]]
        undone = tuple(text for text in changed if now.get(text) == expected[text])
        conflicts = tuple(text for text in changed if now.get(text) != expected[text])
        args = get_arguments(op, AclArgs).keep(undone) if undone else None
        return UndoResult(self.inverse_name, args, conflicts)


class CreateAcls(_ChangeAcls):
    """The operation type that creates bindings."""

    name = "acls.create"
    inverse_name = "acls.delete"
    done_label = ("set of ACLs created", "sets of ACLs created")
    is_creation = True

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource if the plan creates all of its bindings; otherwise None."""
        return op.resource if get_arguments(op, AclArgs).whole else None


class DeleteAcls(_ChangeAcls):
    """The operation type that deletes bindings."""

    name = "acls.delete"
    inverse_name = "acls.create"
    done_label = ("set of ACLs deleted", "sets of ACLs deleted")
    is_creation = False

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that also lists the users, so that ACLs are deleted before credentials."""
        principals = {binding.principal for binding in list_bindings(op)}
        users = sorted(p.removeprefix("User:") for p in principals if p.startswith("User:"))
        return [
            *super().compute_footprint(op),
            *(FootprintEntry(SCRAM_USER, user, Access.AFTER) for user in users),
        ]

    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource if the plan deletes all of its bindings; otherwise None."""
        return op.resource if get_arguments(op, AclArgs).whole else None


CREATE, DELETE = CreateAcls(), DeleteAcls()


def build_acl_operations(change: Change, roles: Mapping[Binding, str]) -> tuple[Operation, ...]:
    """Return the operations of a change.

    The operations of each phase depend on the operations of the previous phase.

    roles: the manifest role that each declared or owned binding was expanded from; empty if there is no role.
    """
    operations: list[Operation] = []
    previous: list[Operation] = []
    current: list[Operation] = []
    current_phase: Phase | None = None
    for phase, bindings in _pack_fields(change.fields):
        if phase is not current_phase:
            previous, current, current_phase = current or previous, [], phase
        operation_type = CREATE if phase.creates else DELETE
        whole_action = Action.CREATE if phase.creates else Action.DELETE
        texts = tuple(map(str, bindings))
        op = Operation(
            id=f"{operation_type.name}:{change.id}#{len(operations) + 1:04}",
            verb=operation_type.name,
            resource=change.id,
            args=AclArgs(
                texts,
                change.action is whole_action,
                {str(b): role for b in bindings if (role := roles.get(b, ""))},
            ),
            expect=dict.fromkeys(texts, ABSENT if phase.creates else PRESENT),
            needs={earlier.id: _ORDER_REASON for earlier in previous},
        )
        current.append(with_inverse(operation_type, op))
        operations.append(current[-1])
    return tuple(operations)


_ORDER_REASON = "the principal must not temporarily have too few or too many permissions"


def _pack_fields(fields: Sequence[FieldChange]) -> Iterator[tuple[Phase, list[Binding]]]:
    """Yield the phase and the bindings of each operation.

    Each field change belongs to exactly one operation.
    """
    packed: list[Binding] = []
    packed_phase: Phase | None = None
    for change in fields:
        bindings = parse_field(change)
        phase = find_phase(bindings[0], creates=change.op is FieldOp.APPEND)
        if packed_phase is not None and (
            phase is not packed_phase or len(packed) + len(bindings) > phase.limit
        ):
            yield packed_phase, packed
            packed = []
        packed, packed_phase = [*packed, *bindings], phase
    if packed_phase is not None:
        yield packed_phase, packed


def _find_fault(results: Iterator[Result]) -> Fault | None:
    return next((result for result in results if result is not None), None)
