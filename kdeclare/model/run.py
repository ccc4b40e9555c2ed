"""One execution of a plan, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kdeclare.model.diagnostics import Diagnostic
from kdeclare.model.plan import Plan


class Status(StrEnum):
    """How an operation ended."""

    DONE = "done"
    STARTED = "started"  # a move that goes on in the cluster (--no-wait, or a time-out)
    FAILED = "failed"
    SKIPPED = "skipped"  # something that it needs did not end well
    STALE = "stale"  # what it touches was changed by someone else
    UNKNOWN = "unknown"  # sent, no answer, and the cluster could not be observed; the next run settles it
    INTERRUPTED = "interrupted"  # not begun when the run was stopped


@dataclass(frozen=True, slots=True)
class OperationResult:
    """How one operation ended, and why.

    error: Kafka's error name or a diagnostic code; None when it went well.
    message: a sentence for people.
    cause: the id of the operation whose failure made this one be skipped.
    """

    id: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run did, operation by operation in the order of the plan.

    run_id is None when there was nothing to run.
    """

    run_id: str | None
    plan: Plan
    results: Mapping[str, OperationResult]
    diagnostics: tuple[Diagnostic, ...] = ()
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every operation ended well (a move that was not to be waited for counts)."""
        good = (Status.DONE, Status.STARTED)
        return all(r.status in good and r.error is None for r in self.results.values())
