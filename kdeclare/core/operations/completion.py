"""Work that continues in a system after a request: how kdeclare tracks it, and when it counts as complete."""

from collections.abc import Sequence
from typing import Protocol

from kdeclare.core.clock import Clock
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import WORK_OVERRIDDEN, MoveProgress, OperationResult, Status

_GOES_ON = "The work continues in the system. Plan again to see the result."


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """The progress of ongoing work. what: a description of the work."""

    what: str
    how_far: MoveProgress


class WorkTracker(Protocol):
    """Tracks and reports the progress of one run's ongoing work. Not thread-safe."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """Return the progress of the work; None if there is nothing to report.

        working: operations whose work continues. awaiting: operations that wait for other ongoing work.
        """


class SilentTracker:
    """Reports no progress."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """See `WorkTracker`."""
        return None


class Completion(Protocol):
    """Detects the end of work that continues in a system after the response to the request.

    Only `is_ongoing` is mandatory. The methods are called for operations whose own work continues, and for
    operations that wait for other ongoing work. A run reads the live state repeatedly until no work is
    ongoing or the time limit has passed.
    """

    def __hash__(self) -> int:
        return id(self)

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether work on the objects of ``op`` is still ongoing."""

    def find_failure(self, op: Operation, live: LiveState) -> OperationResult | None:
        """Return the result to report for ``op`` if its work has failed and can no longer succeed.

        Return None if the work is ongoing or has ended in any other way. If the work has already changed the
        system, the result has the error code `WORK_FAILED`.
        """
        return None

    def find_settle_s(self, op: Operation, *, has_failed: bool) -> float:
        """Return how many seconds the system must keep reporting that the work has ended.

        Only then does the work count as ended, because members of some systems briefly show an old or
        intermediate state.

        has_failed: whether the system shows a failure (`find_failure`) instead of the requested result.
        """
        return 0.0

    def find_limit_s(self, op: Operation) -> float | None:
        """Return the time limit for the work of ``op``, in seconds; None to use the limit of the run."""
        return None

    def report_started(self, op: Operation) -> OperationResult:
        """Return the result to report for ``op`` in a run that does not wait for the work to end."""
        return OperationResult(op.id, Status.STARTED, None, _GOES_ON)

    def report_timeout(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        """Return the result to report for ``op`` after its work has exceeded the time limit.

        live: the last observed live state; None if the system has never responded.
        """
        return OperationResult(
            op.id, Status.STARTED, "work-timeout", f"Not finished after {limit_s:g} s. {_GOES_ON}"
        )

    def report_overridden(self, op: Operation) -> OperationResult:
        """Return the result to report for ``op`` after its work ended without the requested result."""
        text = "The work ended without the requested result. Another client changed or stopped the work."
        return OperationResult(op.id, Status.FAILED, WORK_OVERRIDDEN, text)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> WorkTracker:
        """Return a tracker that reports the progress of a run's ongoing work. Sends no request.

        operations: all operations of the run.
        """
        return SilentTracker()
