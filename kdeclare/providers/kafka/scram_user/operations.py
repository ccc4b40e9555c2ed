"""The operation types `scram.upsert` and `scram.delete` (KIP-554), each for one credential."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, Result
from kdeclare.core.operations.argument_binding import OMIT_FALSE, OMIT_NONE, get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Arguments, Operation, UndoResult
from kdeclare.core.operations.operation_type import View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretRef, SecretSource
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.collector import ScramSelection, ScramState, require_visible
from kdeclare.providers.kafka.scram_user.credential import MAX_ITERATIONS, MIN_ITERATIONS, Mechanism
from kdeclare.providers.kafka.scram_user.diff import build_field

CREDENTIAL = "kafka.scram-credential"
"""The object type of credentials in footprints. The name of an object is ``MECHANISM/USER``."""

_NOT_FOUND = "RESOURCE_NOT_FOUND"
_MechanismName = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]


@dataclass(frozen=True, slots=True)
class ScramArgs(Arguments):
    """The credential that an operation changes.

    was: the earlier password, which a rollback restores; None if the password is unknown.
    """

    user: Annotated[str, Field(min_length=1)]
    mechanism: _MechanismName
    was: Annotated[SecretRef | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertScramArgs(ScramArgs):
    """The new password of a credential, and the number of iterations of its salted hash.

    whole: whether the plan sets the first credentials of the user.
    """

    iterations: Annotated[int, Field(ge=MIN_ITERATIONS, le=MAX_ITERATIONS)]
    password: SecretRef
    whole: Annotated[bool, OMIT_FALSE] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteScramArgs(ScramArgs):
    """The credential to delete. whole: whether the plan deletes all owned credentials of the user."""

    whole: bool = False


class _ScramOperationType(KafkaOperationType):
    """The base class of operation types that change one SCRAM credential.

    The only element of the view is the SCRAM mechanism.
    """

    def find_right(self, op: Operation) -> str:
        """Return the permission that the operation requires."""
        return "Alter on the cluster"

    def describe_target(self, op: Operation) -> tuple[str, str]:
        """Return the user whose credential changes."""
        return "user", _get_args(op).user

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint with one entry: the operation updates the credential."""
        args = _get_args(op)
        return [FootprintEntry(CREDENTIAL, f"{args.mechanism}/{args.user}", Access.UPDATE)]

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the ScramUser that the operation changes."""
        return frozenset({op.resource})

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return the only resource that can declare the changed user."""
        return frozenset({op.resource})

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation changes the user that its resource names, and no other user."""
        return op.resource == ResourceId("ScramUser", _get_args(op).user)

    def select(self, op: Operation) -> Selections:
        """Select the user."""
        return (ScramSelection(frozenset({_get_args(op).user})),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the iterations of the credential. None means that there is no credential.

        Raises Fault if the principal is not permitted to describe credentials.
        """
        args = _get_args(op)
        credentials = require_visible(live.get(ScramState)).of(args.user)
        return {args.mechanism: credentials.get(Mechanism(args.mechanism))}

    def expected_state(self, op: Operation) -> View:
        """Return the iterations after the operation."""
        return {**op.expect, _get_args(op).mechanism: self.get_iterations(op)}

    @abstractmethod
    def get_iterations(self, op: Operation) -> int | None:
        """Return the iterations after the operation. None means that there is no credential."""

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the change of the credential."""
        mechanism = Mechanism(_get_args(op).mechanism)
        return (build_field(mechanism, _as_iterations(op.expect.get(mechanism)), self.get_iterations(op)),)

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return the claim for the credential."""
        args = _get_args(op)
        return {args.mechanism: f"scram/{args.mechanism}/{args.user}"}

    def get_batch_key(self, op: Operation) -> str:
        """Return the user as the batch key.

        Brokers reject a request that contains a user twice (DUPLICATE_RESOURCE).
        """
        return _get_args(op).user

    def is_repeatable(self, op: Operation) -> bool:
        """Return True, because a repeated operation has the same effect."""
        return True

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Return the cause of a fault. A missing credential counts as already deleted."""
        if fault.error == _NOT_FOUND:
            return Explanation(FaultCause.GONE_ALREADY)
        return super().explain(op, fault)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send AlterUserScramCredentials. The request contains salted hashes, not passwords."""
        cluster = connections.get(KafkaConnection).cluster
        results = cluster.alter_scram_users([self.build_alteration(op, secrets) for op in ops])
        return {op.id: results[_get_args(op).user] for op in ops}

    @abstractmethod
    def build_alteration(self, op: Operation, secrets: SecretSource) -> ScramAlteration:
        """Return the change to send, with the password. Raises KdeclareError."""

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that restores the earlier credential.

        A password can be restored only if the plan contains a reference to it. A credential whose iterations
        changed after the operation is not restored, but reported as a conflict.
        """
        args = _get_args(op)
        before, after = _as_iterations(op.expect.get(args.mechanism)), self.get_iterations(op)
        current = _as_iterations(now.get(args.mechanism))
        if current == before != after or before is after is None:
            return UndoResult()
        if current != after:
            return UndoResult(conflicts=(args.mechanism,))
        password = args.password if isinstance(args, UpsertScramArgs) else None
        if before is None:
            is_whole = isinstance(args, UpsertScramArgs) and args.whole
            return UndoResult(
                DELETE.name, DeleteScramArgs(args.user, args.mechanism, was=password, whole=is_whole)
            )
        if args.was is None or args.was.reference is None:
            return UndoResult(lost=(f"the earlier password for {args.mechanism}",))
        restored = UpsertScramArgs(
            args.user,
            args.mechanism,
            password,
            iterations=before,
            password=args.was,
            whole=isinstance(args, DeleteScramArgs) and args.whole,
        )
        return UndoResult(UPSERT.name, restored)


class UpsertScram(_ScramOperationType):
    """The operation type that sets the password of one credential."""

    name = "scram.upsert"
    done_label = ("password set", "passwords set")
    arguments = UpsertScramArgs

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the user if the plan sets the first credentials of the user; otherwise None."""
        return op.resource if get_arguments(op, UpsertScramArgs).whole else None

    def get_iterations(self, op: Operation) -> int:
        """Return the iterations of the new credential."""
        return get_arguments(op, UpsertScramArgs).iterations

    def build_alteration(self, op: Operation, secrets: SecretSource) -> ScramAlteration:
        """Return the change that sets the password."""
        args = get_arguments(op, UpsertScramArgs)
        upsertion = ScramUpsertion(args.iterations, secrets.reveal(args.password))
        return ScramAlteration(args.user, Mechanism(args.mechanism), upsertion)


class DeleteScram(_ScramOperationType):
    """The operation type that deletes one credential."""

    name = "scram.delete"
    done_label = ("credential deleted", "credentials deleted")
    arguments = DeleteScramArgs
    deletion_risk = Risk.DISRUPTIVE

    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        """Return the user if the plan deletes all owned credentials of the user; otherwise None."""
        return op.resource if get_arguments(op, DeleteScramArgs).whole else None

    def get_iterations(self, op: Operation) -> None:
        """Return None, because there is no credential after the operation."""
        return

    def build_alteration(self, op: Operation, secrets: SecretSource) -> ScramAlteration:
        """Return the change that deletes the credential."""
        args = _get_args(op)
        return ScramAlteration(args.user, Mechanism(args.mechanism))


UPSERT = UpsertScram()
DELETE = DeleteScram()


def _get_args(op: Operation) -> ScramArgs:
    return get_arguments(op, ScramArgs)


def _as_iterations(value: JsonValue) -> int | None:
    return value if isinstance(value, int) else None
