"""The data that commands about runs show. The use cases fill it; the renderers read it.

Classes whose fields have descriptions are documents, which ``--format json`` prints unchanged.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer

from kdeclare.core.documents import Diagnostics, Hidden, OneOf, Second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Plan, Summary
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import LockInfo
from kdeclare.core.provider.provider import Activity, OngoingWork

UNREADABLE = "unreadable"
"""The outcome of a run whose plan or journal is damaged or has a different format version."""


@dataclass(frozen=True, slots=True)
class CountsDocument:
    """The number of operations by status."""

    done: int
    started: int
    failed: int
    denied: Annotated[int, Field(description="Refused by a policy of the system.")]
    skipped: int
    stale: int
    unknown: int
    interrupted: int


def _build_counts_document(counts: Mapping[Status, int]) -> CountsDocument:
    return CountsDocument(*(counts.get(status, 0) for status in Status))


StatusCounts = Annotated[Mapping[Status, int], PlainSerializer(_build_counts_document)]
_Second = Annotated[Second | None, Field(description="UTC, ISO 8601.")]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in a list.

    outcome: done, denied, partial, error, interrupted, unfinished (it was killed, or is still running), or
    unreadable; ``problem`` then explains why.
    gist: the outcome for people; if a part was denied, how much was done (see `report.outcome.Outcome`).
    counts: operations by status; operations that never started count in ``operations`` only.
    undoes: the run that this one was to roll back. undone_by: the last run that rolled back some of this one.
    """

    run_id: str
    started: Second
    ended: _Second
    outcome: Annotated[
        str, OneOf("done", "denied", "partial", "error", "interrupted", "unfinished", UNREADABLE)
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
    gist: Hidden[str] = ""

    @property
    def done(self) -> int:
        """The number of successful operations, including reassignments still in progress."""
        return self.counts.get(Status.DONE, 0) + self.counts.get(Status.STARTED, 0)


@dataclass(frozen=True, slots=True)
class RunStep:
    """One operation of a run; ``status`` is null if it never started, or if its outcome is unknown.

    begun, ended: None if the journal has no such line; begun without ended is an unknown outcome.
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

    @property
    def known_status(self) -> Status:
        """The status; without one, UNKNOWN if the operation was started, else INTERRUPTED."""
        return self.status or (Status.UNKNOWN if self.begun else Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class RunOverride:
    """One policy denial that was overridden for a run."""

    schema_name = "OverrideDocument"

    policy: str
    resource: str
    topic: Annotated[str | None, Field(description="The denied topic, if it is not the resource itself.")]
    reason: str
    principal: Annotated[
        str | None,
        Field(description="The user's principal in the system; null if it does not authenticate clients."),
    ]


@dataclass(frozen=True, slots=True)
class RunDetail(RunSummary):
    """One run in full.

    steps: in the order of the plan, which is next to the run in the state folder.
    """

    plan: Hidden[Plan] = field(kw_only=True)
    steps: tuple[RunStep, ...] = ()
    overrides: tuple[RunOverride, ...] = ()
    diagnostics: Diagnostics = ()

    @property
    def run(self) -> RunSummary:
        """The run as it is in the list of runs."""
        return self


@dataclass(frozen=True, slots=True)
class UnfinishedRun(RunSummary):
    """A run that has not ended.

    unknown: started operations whose outcome is not known yet. not_begun: how many were not started.
    """

    schema_name = "UnfinishedDocument"

    unknown: tuple[RunStep, ...] = ()
    not_begun: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Runs, the latest first."""

    runs: tuple[RunSummary, ...]
    older: Annotated[int, Field(description="The number of older runs that --limit leaves out.")] = 0


@dataclass(frozen=True, slots=True)
class StatusView:
    """What is in progress in one environment right now.

    activities: the work in its systems. last: the latest run that ended.
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
    """A command that failed as a whole."""

    outcome: Literal["error"]
    exit_code: int
    diagnostics: Diagnostics
