"""What the commands about runs show, as plain data. The use-cases fill it; the renderers read it.

What has descriptions at its fields is a document: ``--format json`` prints it as it is.
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
"""The outcome of a run whose plan or journal is damaged, or of another version."""


@dataclass(frozen=True, slots=True)
class CountsDocument:
    """Operations by how they ended."""

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

    outcome: done, denied, partial, error, interrupted, unfinished (it was killed, or still runs), or
    unreadable; ``problem`` then says why.
    gist: the outcome for people; where a part was denied, how much was done (see `report.outcome.Outcome`).
    counts: operations by how they ended; those that never began are in ``operations`` only.
    undoes, undone_by: the run that it was to roll back, and the last one that rolled back some of it.
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
    overridden: Annotated[int, Field(description="How many denials of policies it did not heed.")] = 0
    summary: Summary = field(default_factory=Summary)
    adopted: Annotated[int, Field(description="Resources taken into ownership without a change.")] = 0
    operations: Annotated[int, Field(description="How many the plan has.")] = 0
    counts: StatusCounts = field(default_factory=dict)
    problem: Annotated[str, Field(description="Why the run cannot be read; empty if it can.")] = ""
    gist: Hidden[str] = ""

    @property
    def done(self) -> int:
        """Operations that ended well, moves that go on among them."""
        return self.counts.get(Status.DONE, 0) + self.counts.get(Status.STARTED, 0)


@dataclass(frozen=True, slots=True)
class RunStep:
    """One operation of a run; ``status`` null: never begun, or nobody knows.

    begun, ended: None when the journal has no such line; begun without ended is an unknown outcome.
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
        """What has no status was begun, and nobody knows how it ended, or was not begun."""
        return self.status or (Status.UNKNOWN if self.begun else Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class RunOverride:
    """One denial of a policy that a run did not heed."""

    schema_name = "OverrideDocument"

    policy: str
    resource: str
    topic: Annotated[str | None, Field(description="Where it is not the resource itself.")]
    reason: str
    principal: Annotated[
        str | None,
        Field(description="Whom the system took the person for; null where it authenticates nobody."),
    ]


@dataclass(frozen=True, slots=True)
class RunDetail(RunSummary):
    """One run in full.

    steps: in the order of the plan, which stands beside the run in the state folder.
    """

    plan: Hidden[Plan] = field(kw_only=True)
    steps: tuple[RunStep, ...] = ()
    overrides: tuple[RunOverride, ...] = ()
    diagnostics: Diagnostics = ()

    @property
    def run(self) -> RunSummary:
        """What the list of runs says of it."""
        return self


@dataclass(frozen=True, slots=True)
class UnfinishedRun(RunSummary):
    """A run without an end.

    unknown: operations begun whose outcome nobody has seen yet. not_begun: how many it had not come to.
    """

    schema_name = "UnfinishedDocument"

    unknown: tuple[RunStep, ...] = ()
    not_begun: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Runs, the latest first."""

    runs: tuple[RunSummary, ...]
    older: Annotated[int, Field(description="How many more runs there are that --limit leaves out.")] = 0


@dataclass(frozen=True, slots=True)
class StatusView:
    """What goes on in one environment right now.

    activities: of its systems. last: the latest run that ended.
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
        """What systems are working on."""
        return tuple(work for activity in self.activities for work in activity.ongoing)


@dataclass(frozen=True, slots=True)
class ValidationView:
    """What reading the manifests found."""

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
