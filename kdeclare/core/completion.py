"""Work that goes on in a system after its request was answered, and how a run follows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kdeclare.core.clock import Clock
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.run import MoveProgress, OperationResult, Status

_GOES_ON = "The work goes on in the system; plan again to see what became of it."


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """How far the work is. what: what is being done, in words."""

    what: str
    how_far: MoveProgress


class WorkTracker(Protocol):
    """Follows the work of one run from look to look, for people. Not for several threads."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """Return how far the work is; None where there is nothing to tell.

        working: operations whose work goes on. awaiting: those that wait for the work of others.
        """


class SilentTracker:
    """Tells nothing of how far the work is."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """See `WorkTracker`."""
        return None


class Completion(Protocol):
    """How a provider tells whether work that goes on in its system is over. Only `is_ongoing` must be said.

    It is asked about operations whose own work goes on, and about those that wait for such work. A run looks
    at the live state again and again until nothing is ongoing, or its limit has passed.
    """

    def __hash__(self) -> int:
        """Return the hash of the object itself, as every object has it."""
        return id(self)

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether work on the objects of ``op`` is not over."""

    def find_limit_s(self, op: Operation) -> float | None:
        """Return for how long ``op`` may take, in seconds; None where the run's own limit holds."""
        return None

    def leave(self, op: Operation) -> OperationResult:
        """Return the result of ``op`` when the run does not wait for the work to end."""
        return OperationResult(op.id, Status.STARTED, None, _GOES_ON)

    def give_up(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        """Return the result of ``op`` when its work does not end in time.

        live: as it was seen last; None where the system has not answered once.
        """
        return OperationResult(
            op.id, Status.STARTED, "work-timeout", f"Not finished after {limit_s:g} s. {_GOES_ON}"
        )

    def report_other_end(self, op: Operation) -> OperationResult:
        """Return the result of ``op`` when the work has ended with something else than ``op`` asked for."""
        text = "The work ended, but not with what was asked for: another client changed or stopped it."
        return OperationResult(op.id, Status.FAILED, "work-overridden", text)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> WorkTracker:
        """Return what tells how far the work of a run is. operations: all of the run. Asks nothing yet."""
        return SilentTracker()
