"""The data that is shown by commands about runs.

Classes whose fields have descriptions are also JSON documents: ``--format json`` prints all their fields.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer

from kdeclare.core.documents import Diagnostics, Hidden, OneOf, Second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.observed_effect import ObservedEffect
from kdeclare.core.plans.plan import Plan, Summary
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import LockInfo
from kdeclare.core.provider.provider import Activity, OngoingWork

UNREADABLE = "unreadable"
"""The outcome of a run whose plan or journal is damaged or has an unsupported format version."""


ABANDONED = "abandoned"
"""The outcome of a run that a user abandoned because it cannot be finished."""


@dataclass(frozen=True, slots=True)
class CountsDocument:
    """The number of operations by status."""

    done: int
    started: int
    failed: int
    denied: Annotated[int, Field(description="Denied by a policy that the system enforces.")]
    skipped: int
    stale: int
    unknown: int
    interrupted: int


def _build_counts_document(counts: Mapping[Status, int]) -> CountsDocument:
    return CountsDocument(*(counts.get(status, 0) for status in Status))


StatusCounts = Annotated[Mapping[Status, int], PlainSerializer(_build_counts_document)]
RunEffects = Annotated[
    tuple[ObservedEffect, ...],
    Field(description="The observed effects of the changes, next to the effects that the plan predicted."),
]
_Second = Annotated[Second | None, Field(description="UTC, ISO 8601.")]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A summary of one run, as shown in a list of runs.

    outcome: done, denied, partial, error, interrupted, unfinished (the run was killed or is still running),
        unreadable (``problem`` contains the reason), or abandoned (`kdeclare state abandon`).
    started: null if the journal and the id of the run do not contain the time.
    gist: the outcome in words. If some changes were denied, it contains the number of applied changes.
    counts: the number of operations by status. Operations that were not started are included only in
        ``operations``.
    undoes: the run that this run rolls back.
    undone_by: the latest run that rolled back this run, completely or partially.
    """

    run_id: str
    started: _Second
    ended: _Second
    outcome: Annotated[
        str, OneOf("done", "denied", "partial", "error", "interrupted", "unfinished", UNREADABLE, ABANDONED)
    ]
    user: str
    command: str
    plan_id: str
    undoes: str | None = None
    undone_by: str | None = None
    overridden: Annotated[int, Field(description="The number of overridden policy denials.")] = 0
    summary: Summary = field(default_factory=Summary)
    adopted: Annotated[int, Field(description="The number of resources adopted without a change.")] = 0
    operations: Annotated[int, Field(description="The number of operations of the plan.")] = 0
    counts: StatusCounts = field(default_factory=dict)
    problem: Annotated[str, Field(description="Why the run cannot be read; empty if it can be read.")] = ""
    abandoned_by: Annotated[str | None, Field(description="Who abandoned the run.")] = None
    abandoned_at: _Second = None
    gist: Hidden[str] = ""

    @property
    def done(self) -> int:
        """The number of successful operations, including reassignments that are still in progress."""
        return self.counts.get(Status.DONE, 0) + self.counts.get(Status.STARTED, 0)

    @property
    def duration_s(self) -> float | None:
        """How long the run took, in seconds; None if the start or the end is unknown."""
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()


@dataclass(frozen=True, slots=True)
class RunStep:
    """One operation of a run. ``status`` is null if the operation was not started or has an unknown outcome.

    begun, ended: the times of the start and the end; None if the journal does not contain the event. If only
        ``ended`` is None, the outcome is unknown.
    """

    schema_name = "StepDocument"

    id: str
    verb: str
    resource: str
    status: Status | None = None
    begun: _Second = None
    ended: _Second = None
    error: str | None = None
    message: str = ""
    cause: str | None = None
    owner: Annotated[str | None, Field(description="The owner of the resource; null if it has none.")] = None

    @property
    def known_status(self) -> Status:
        """The status of the operation.

        If ``status`` is None, the result is UNKNOWN for a started operation, and INTERRUPTED for any other
        operation.
        """
        return self.status or (Status.UNKNOWN if self.begun else Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class RunOverride:
    """A policy denial that was overridden for a run."""

    schema_name = "OverrideDocument"

    policy: str
    resource: str
    topic: Annotated[str | None, Field(description="The denied topic, if it is not the resource itself.")]
    reason: str
    principal: Annotated[
        str | None,
        Field(description="The user's principal; null if the system does not authenticate clients."),
    ]


@dataclass(frozen=True, slots=True)
class RunDetail(RunSummary):
    """A run with all details.

    steps: the operations of the run in the order of the plan.
    """

    plan: Hidden[Plan] = field(kw_only=True)
    steps: tuple[RunStep, ...] = ()
    overrides: tuple[RunOverride, ...] = ()
    diagnostics: Diagnostics = ()
    effects: RunEffects = ()

    @property
    def run(self) -> RunSummary:
        """The summary of the run, as shown in the list of runs."""
        return self


@dataclass(frozen=True, slots=True)
class UnfinishedRun(RunSummary):
    """A run that has not ended.

    unknown: the started operations with an unknown outcome.
    not_begun: the number of operations that were not started.
    """

    schema_name = "UnfinishedDocument"

    unknown: tuple[RunStep, ...] = ()
    not_begun: int = 0


@dataclass(frozen=True, slots=True)
class AbandonedRun:
    """A run that cannot be finished, and the operations that it began.

    operations: the operations that the run began, as far as its journal can be read. ``status`` is null if
        the outcome is not known.
    """

    run_id: str
    abandoned: Annotated[bool, Field(description="Whether the run is now abandoned.")]
    problem: Annotated[str, Field(description="Why the run cannot be read; empty if it can be read.")]
    journal_complete: Annotated[bool, Field(description="Whether all entries of the journal could be read.")]
    operations: tuple[RunStep, ...] = ()

    @property
    def unknown(self) -> tuple[RunStep, ...]:
        """The operations without a known outcome."""
        return tuple(step for step in self.operations if step.status in (None, Status.UNKNOWN))


@dataclass(frozen=True, slots=True)
class PrunedRuns:
    """Old runs that `kdeclare state prune` removes."""

    runs: Annotated[tuple[str, ...], Field(description="The ids of these runs, oldest first.")]
    kept: Annotated[int, Field(description="The number of all other runs.")]
    removed: Annotated[bool, Field(description="Whether the runs were removed.")]


@dataclass(frozen=True, slots=True)
class History:
    """A list of runs, the latest first."""

    runs: tuple[RunSummary, ...]
    older: Annotated[int, Field(description="The number of older runs that --limit omits.")] = 0


@dataclass(frozen=True, slots=True)
class StatusView:
    """The current status of one environment.

    activities: work in progress in the systems of the environment.
    last: the latest run that ended.
    """

    project: str
    env: str
    cluster: str
    unfinished: tuple[UnfinishedRun, ...] = ()
    activities: tuple[Activity, ...] = ()
    lock: LockInfo | None = None
    last: RunSummary | None = None

    @property
    def ongoing(self) -> tuple[OngoingWork, ...]:
        """The work in progress in all systems."""
        return tuple(work for activity in self.activities for work in activity.ongoing)


@dataclass(frozen=True, slots=True)
class ValidationView:
    """The result of validating the manifests."""

    schema_name = "ValidationDocument"

    valid: bool = field(init=False, default=True)
    files: int
    resources: int
    diagnostics: Diagnostics = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "valid", not any(d.is_blocking for d in self.diagnostics))


@dataclass(frozen=True, slots=True)
class ProblemDocument:
    """The error of a command that failed and has no result."""

    outcome: Literal["error"]
    exit_code: int
    diagnostics: Diagnostics
