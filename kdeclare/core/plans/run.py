"""One execution of a plan, as data."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Plan, Verdict, build_system_denial


class Status(StrEnum):
    """How an operation ended."""

    DONE = "done"
    STARTED = "started"  # a move that goes on in the cluster (--no-wait, or a time-out)
    FAILED = "failed"
    DENIED = "denied"  # a policy of the system refused it
    SKIPPED = "skipped"  # something that it needs did not end well
    STALE = "stale"  # what it touches was changed by someone else
    UNKNOWN = "unknown"  # sent, no answer, and the cluster could not be observed; the next run settles it
    INTERRUPTED = "interrupted"  # not begun when the run was stopped


REQUEST_DEADLINE_S = 90.0
"""For how long brokers may work on a request that carries no timeout, where the project says nothing else."""

NOT_PROPAGATED = "not-everywhere"
"""The error of an operation that has been done, and that not all have followed whom it is for."""


@dataclass(frozen=True, slots=True)
class OperationResult:
    """How one operation ended, and why.

    error: Kafka's error name or a diagnostic code; None when it went well.
    message: a sentence for people.
    cause: the id of the operation whose failure made this one be skipped.
    created_id: of a creation that the system acknowledged, the new object's id; None where nothing proves
        which object the run created.
    """

    id: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str | None = None
    created_id: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether it was done; a move that goes on counts."""
        return self.status in (Status.DONE, Status.STARTED)

    @property
    def had_effect(self) -> bool:
        """Whether anything was changed, as far as is known."""
        return self.is_good or self.is_partial

    @property
    def is_partial(self) -> bool:
        """Whether it failed, and has changed something all the same."""
        return self.status is Status.FAILED and self.error == NOT_PROPAGATED


@dataclass(frozen=True, slots=True)
class PendingPart:
    """A partition in flight, and the brokers whose copies are not in sync yet.

    down: those of them that are fenced. stalled: nothing has arrived for a while.
    """

    partition: str
    brokers: tuple[int, ...]
    down: tuple[int, ...] = ()
    stalled: bool = False


def _list_stalled(pending_parts: tuple[PendingPart, ...]) -> list[str]:
    return [item.partition for item in pending_parts if item.stalled]


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """How far the work in a system has got. Its parts are the partitions that are moved, for instance.

    rate: bytes a second. waiting: what needs a look, what waits for a broker that is down first; the document
    names what is stalled. noun, member: what people call a part, and a member of the system that works on it.
    """

    schema_name = "ProgressDocument"

    partitions: Annotated[int, Field(description="Parts that are done.")]
    partitions_total: Annotated[int, Field(description="Parts that there are.")]
    bytes: Annotated[int, Field(description="Copied so far; 0 for work that copies nothing.")]
    bytes_total: Annotated[int, Field(description="To be copied; 0 for work that copies nothing.")]
    rate: Annotated[
        float | None,
        Field(description="Lately; null while nothing tells.", serialization_alias="bytes_per_second"),
    ] = None
    left_s: Annotated[
        float | None,
        Field(description="An estimate; null while nothing tells.", serialization_alias="seconds_left"),
    ] = None
    waiting: Annotated[
        tuple[PendingPart, ...],
        PlainSerializer(_list_stalled),
        Field(description="Parts of which nothing has arrived lately.", serialization_alias="stalled"),
    ] = ()
    noun: Annotated[str, Field(exclude=True)] = "part"
    member: Annotated[str, Field(exclude=True)] = "member"


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What a run did, operation by operation in the order of the plan.

    run_id is None when there was nothing to run. plan: without what was denied when it was to be applied.
    identity: the id of the plan as it was asked for, which the journal has; None where nobody knows it.
    """

    run_id: str | None
    plan: Plan
    results: Mapping[str, OperationResult]
    diagnostics: tuple[Diagnostic, ...] = ()
    interrupted: bool = False
    identity: str | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of the plan, and what the brokers' own policies have refused meanwhile."""
        denied_operations = [op for op in self.plan.operations if self._find_status(op.id) is Status.DENIED]
        denials = (
            build_system_denial(str(op.resource), self.results[op.id].message) for op in denied_operations
        )
        return (*self.plan.verdicts, *denials)

    def _find_status(self, operation: str) -> Status | None:
        result = self.results.get(operation)
        return result.status if result else None

    @property
    def complete(self) -> bool:
        """Whether every operation ended well (a move that was not to be waited for counts)."""
        return all(r.is_good and r.error is None for r in self.results.values())
