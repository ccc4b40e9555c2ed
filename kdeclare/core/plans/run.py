"""Data about one execution of a plan."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.observed_effect import ObservedEffect
from kdeclare.core.plans.plan import Plan, Verdict, build_system_denial


class Status(StrEnum):
    """How an operation ended."""

    DONE = "done"
    STARTED = "started"  # the work continues in the cluster (after --no-wait or a timeout)
    FAILED = "failed"
    DENIED = "denied"  # a policy of the system refused the operation
    SKIPPED = "skipped"  # an operation that this operation depends on did not succeed
    STALE = "stale"  # another client changed the live state that the operation touches
    UNKNOWN = "unknown"  # no response, and no live state could be read; the next run finds the outcome
    INTERRUPTED = "interrupted"  # the run was stopped before the operation began


REQUEST_DEADLINE_S = 90.0
"""The default time that brokers have to process a request, in seconds. Projects can set a different time."""

NOT_PROPAGATED = "not-everywhere"
"""The error code for an operation that was executed, but has not taken effect on all members of the system.
"""

WORK_FAILED = "work-failed"
"""The error code for an operation that was executed, but whose work in the system failed afterward."""

WORK_OVERRIDDEN = "work-overridden"
"""The error code for an operation that was executed, but whose effect another client changed soon afterward.
"""

_PARTIAL_ERRORS = frozenset({NOT_PROPAGATED, WORK_FAILED, WORK_OVERRIDDEN})


@dataclass(frozen=True, slots=True)
class OperationResult:
    """How one operation ended, and why.

    error: Kafka's error name or a diagnostic code; None if the operation succeeded.
    message: a sentence for display.
    cause: the id of the operation whose failure caused this operation to be skipped.
    created_id: the id of the new object, if the system acknowledged that it was created; None if it is not
        certain which object the run created.
    """

    id: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str | None = None
    created_id: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether the operation succeeded. A reassignment that continues counts as a success."""
        return self.status in (Status.DONE, Status.STARTED)

    @property
    def had_effect(self) -> bool:
        """Whether the operation changed anything. False if this is unknown."""
        return self.is_good or self.is_partial

    @property
    def is_partial(self) -> bool:
        """Whether the operation failed after changing something."""
        return self.status is Status.FAILED and self.error in _PARTIAL_ERRORS


@dataclass(frozen=True, slots=True)
class PendingPart:
    """A partition that is being reassigned, and the brokers whose replicas are not in sync yet.

    down: the fenced brokers among ``brokers``. stalled: whether no data has arrived recently.
    """

    partition: str
    brokers: tuple[int, ...]
    down: tuple[int, ...] = ()
    stalled: bool = False


def _list_stalled(pending_parts: tuple[PendingPart, ...]) -> list[str]:
    return [item.partition for item in pending_parts if item.stalled]


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """Progress of ongoing work that consists of parts, such as the partitions that are being moved.

    rate: bytes per second.
    waiting: parts that need attention. Parts that wait for a broker that is down come first. The JSON
        document lists only stalled parts.
    noun: the display name of a part.
    member: the display name of a member of the system.
    """

    schema_name = "ProgressDocument"

    partitions: Annotated[int, Field(description="Number of finished parts of the work.")]
    partitions_total: Annotated[int, Field(description="Total number of parts of the work.")]
    bytes: Annotated[int, Field(description="Bytes copied so far; 0 for work that copies no data.")]
    bytes_total: Annotated[int, Field(description="Total bytes to copy; 0 for work that copies no data.")]
    rate: Annotated[
        float | None,
        Field(description="Recent copy rate; null while unknown.", serialization_alias="bytes_per_second"),
    ] = None
    left_s: Annotated[
        float | None,
        Field(description="Estimated time left; null while unknown.", serialization_alias="seconds_left"),
    ] = None
    waiting: Annotated[
        tuple[PendingPart, ...],
        PlainSerializer(_list_stalled),
        Field(
            description="Parts of the work for which no data has arrived recently.",
            serialization_alias="stalled",
        ),
    ] = ()
    noun: Annotated[str, Field(exclude=True)] = "part"
    member: Annotated[str, Field(exclude=True)] = "member"


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The results of a run, one per operation, in the order of the plan.

    run_id: the id of the run; None if the plan had no operations to run.
    plan: the plan without the operations that policies denied during apply.
    identity: the id of the requested plan, as recorded in the journal; None if the id is unknown.
    effects: the observed effects of the changes, together with the predictions of the plan, the most
        important first.
    """

    run_id: str | None
    plan: Plan
    results: Mapping[str, OperationResult]
    diagnostics: tuple[Diagnostic, ...] = ()
    interrupted: bool = False
    identity: str | None = None
    effects: tuple[ObservedEffect, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of the plan, and the denials by policies of the brokers during the run."""
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
        """Whether every operation succeeded.

        A reassignment that continues after the run counts as a success.
        """
        return all(r.is_good and r.error is None for r in self.results.values())
