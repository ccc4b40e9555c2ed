"""What a verb is: how an operation looks at the cluster, runs, and is undone."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Protocol

from kdeclare.core.changes import FieldChange
from kdeclare.core.collector import Selections
from kdeclare.core.faults import Outcome
from kdeclare.core.jsontypes import Json
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.run import Status
from kdeclare.core.secrets import SecretSource, Steps
from kdeclare.core.state import PendingCleanup

View = Mapping[str, Json]
"""The live state that an operation touches, element by element: a config key, a partition, a count.

``expect`` of an operation is the view it was planned on. Comparing views is how apply finds a stale
operation, how a time-out is settled, and how rollback finds what someone else has changed since.
"""


@dataclass(frozen=True, slots=True)
class Undo:
    """What undoing one operation comes to.

    verb, args: the inverse; args is None when there is nothing to do.
    conflicts: elements that someone else has changed since; they are left alone.
    lost: elements that nothing brings back.
    """

    verb: str = ""
    args: Mapping[str, Json] | None = None
    conflicts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


IDENTITY = "(id of "
"""How an element of a view begins that tells an object from a later one of the same name."""


def is_identity(element: str) -> bool:
    """Whether an element of a view says which topic it is about."""
    return element.startswith(IDENTITY)


def is_other_object(op: Operation, now: View) -> bool:
    """Whether an object that ``op`` was planned on is gone, or another one by now."""
    return any(is_identity(e) and now.get(e) != value for e, value in op.expect.items())


class Verb(Protocol):
    """One verb of the plan format; what most verbs have in common is here. All but `execute` is pure."""

    name: str
    arguments: type
    """The TypedDict that its arguments are, in a plan file."""
    validates: bool = False
    """Whether Kafka can check it without doing it (validate-only)."""
    has_timeout: bool = False
    """Whether its request says for how long brokers may work on it (timeoutMs)."""
    moves: bool = False
    """Whether it goes on in the cluster after the request: it moves the replicas of partitions."""
    makes: bool = False
    """Whether it makes what others can be about."""
    destroys: bool = False
    """Whether what it is on is gone afterwards."""
    waits: bool = False
    """Whether it begins only when none of its partitions is being moved."""
    accompanies: bool = False
    """Whether it is there only for the moves of other operations."""
    spreads: bool = False
    """Whether what it is for follows one after the other, once it has been done."""
    tidies: bool = False
    """Whether it takes away what the run has put somewhere, and so runs also when the run is stopped."""

    def __hash__(self) -> int:
        """Return the hash of the object itself, as every object has it."""
        return id(self)

    def select(self, op: Operation) -> Selections:
        """What must be read for a view."""

    def view(self, op: Operation, live: LiveState) -> View:
        """The live state that ``op`` touches, in the form of ``op.expect``."""

    def after(self, op: Operation) -> View:
        """The view once ``op`` has been done."""

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """What ``op`` changes, for people; where no diff has said it (a rollback)."""

    def less(self, op: Operation, subjects: Set[str]) -> Operation | None:
        """What is left of ``op`` when these subjects of policies are left alone; None if nothing is."""
        return op

    def element_at(self, op: Operation, at: Steps) -> str:
        """The element of the view that a place in the arguments belongs to, or what to call the place."""
        return ".".join(map(str, at))

    def without(self, op: Operation, elements: Set[str]) -> Operation | None:
        """``op`` without these elements of its view; None where it cannot do the rest alone."""
        return None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """The elements of the view under names that are unique in the cluster."""

    def item(self, op: Operation) -> str:
        """What stands for ``op`` in a request: Kafka takes it only once there."""

    def produces(self, op: Operation) -> frozenset[str]:
        """The claims that ``op`` changes; what needs it cannot be checked for them before it has run."""

    def lagging(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """Of what `spreads`: who has not followed yet, and why, in words."""
        return ()

    def is_repeatable(self, op: Operation) -> bool:
        """Whether sending ``op`` again does no harm and tells what became of it the first time."""
        return False

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Run a batch; a result for each operation id. Raises Fault when the request failed whole."""

    def undo(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """What undoes ``op``, which has been done whole or in part, given the view as it is now."""

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Return what is to be removed later, given what was to be before ``op`` ended so."""
        return before


def batches(verb: Verb, operations: Sequence[Operation], size: int) -> Iterator[list[Operation]]:
    """Groups of at most ``size`` operations of one verb in which no item appears twice."""
    rest = list(operations)
    while rest:
        batch: dict[str, Operation] = {}
        later: list[Operation] = []
        for op in rest:
            if len(batch) < size and verb.item(op) not in batch:
                batch[verb.item(op)] = op
            else:
                later.append(op)
        yield list(batch.values())
        rest = later


def with_inverse(verb: Verb, op: Operation) -> Operation:
    """``op`` with what undoes it, as far as that can be said before it has run."""
    undo = verb.undo(op, verb.after(op), allow_data_loss=False)
    if undo.lost or undo.args is None:
        lost = ", ".join(undo.lost) or "nothing"
        return replace(op, irreversible=op.irreversible or f"Cannot be brought back: {lost}.")
    return replace(op, inverse={"verb": undo.verb, "args": undo.args})


def with_args(op: Operation, args: Mapping[str, Json]) -> Operation:
    """``op`` with other args, where what undoes it takes the same."""
    return replace(op, args=args, inverse={**(op.inverse or {}), "args": args})
