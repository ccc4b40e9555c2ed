"""What the commands about runs show, as plain data. The use-cases fill it; the renderers read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.core.plan import Plan, Summary, Verdict
from kdeclare.core.run import MoveProgress, Status
from kdeclare.core.state import LockInfo

if TYPE_CHECKING:
    from kdeclare.policy.testing.run import CaseResult  # reads files: nothing for who only shows a plan


UNREADABLE = "unreadable"
"""The outcome of a run whose plan or journal is damaged, or of another version."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in a list.

    outcome: done, denied, partial, error, interrupted, unfinished (it was killed, or still runs), or
    unreadable; ``problem`` then says why.
    gist: the outcome for people; where a part was denied, how much was done (see `report.outcome.Outcome`).
    counts: operations by how they ended; those that never began are in ``operations`` only.
    undoes, undone_by: the run that it was to roll back, and the last one that rolled back some of it.
    overridden: how many denials of policies it did not heed.
    adopted: how many resources its plan takes into ownership without changing them.
    """

    run_id: str
    started: datetime
    ended: datetime | None
    outcome: str
    user: str
    command: str
    plan_id: str
    summary: Summary = field(default_factory=Summary)
    operations: int = 0
    counts: Mapping[Status, int] = field(default_factory=dict)
    undoes: str | None = None
    undone_by: str | None = None
    overridden: int = 0
    adopted: int = 0
    gist: str = ""
    problem: str = ""

    @property
    def done(self) -> int:
        """Operations that ended well, moves that go on among them."""
        return self.counts.get(Status.DONE, 0) + self.counts.get(Status.STARTED, 0)


@dataclass(frozen=True, slots=True)
class RunStep:
    """One operation of one run, as its journal tells it. ``status`` None: never begun, or unknown.

    begun, ended: None when the journal has no such line; begun without ended is an unknown outcome.
    """

    id: str
    verb: str
    resource: str
    status: Status | None = None
    begun: datetime | None = None
    ended: datetime | None = None
    error: str | None = None
    message: str = ""
    cause: str | None = None

    @property
    def known_status(self) -> Status:
        """What has no status was begun, and nobody knows how it ended, or was not begun."""
        return self.status or (Status.UNKNOWN if self.begun else Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class RunOverride:
    """One denial of a policy that a run did not heed, as its journal tells it.

    topic: where it is not the resource itself. principal: whom the brokers took the person for; None
    where they authenticate nobody.
    """

    policy: str
    resource: str
    topic: str | None
    reason: str
    principal: str | None


@dataclass(frozen=True, slots=True)
class RunDetail:
    """One run in full: its plan, its steps in the order of the plan, and which denials it overrode."""

    run: RunSummary
    plan: Plan
    steps: tuple[RunStep, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    overrides: tuple[RunOverride, ...] = ()


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run without an end. ``unknown``: operations begun whose outcome nobody has seen yet."""

    run: RunSummary
    unknown: tuple[RunStep, ...] = ()

    @property
    def not_begun(self) -> int:
        """Operations that the run had not come to."""
        return self.run.operations - sum(self.run.counts.values()) - len(self.unknown)


@dataclass(frozen=True, slots=True)
class MoveInFlight:
    """One partition that the cluster is moving.

    run_id: the run that asked for it, if one did. waits_for: brokers whose copy is not in sync yet; down:
    those of them that are not serving.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    run_id: str | None = None
    waits_for: tuple[int, ...] = ()
    down: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas it is heading to."""
        return tuple(r for r in self.replicas if r not in self.removing)


@dataclass(frozen=True, slots=True)
class StatusView:
    """What goes on in one environment right now.

    progress: how far the moves have got. throttles: on how many brokers and topics kdeclare has left a
    throttle until they are over. last: the latest run that ended.
    """

    project: str
    env: str
    cluster: str
    unfinished: tuple[UnfinishedRun, ...] = ()
    moves: tuple[MoveInFlight, ...] = ()
    lock: LockInfo | None = None
    last: RunSummary | None = None
    progress: MoveProgress | None = None
    throttles: int = 0


@dataclass(frozen=True, slots=True)
class ValidationView:
    """What reading the manifests found."""

    files: int
    resources: int
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyCheckView:
    """What the policies say of resources.

    cluster: whose resources, as they are; None for manifests, as if these were created now.
    topics: how many there are, of all kinds. noun: what they are called. policies: all that are in force,
    whether one was asked or not.
    open: policy and resource, where only a cluster can tell. places: where resources are declared.
    """

    project: str
    env: str
    cluster: str | None
    topics: int
    policies: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    open: tuple[tuple[str, str], ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    noun: str = "topic"


@dataclass(frozen=True, slots=True)
class PolicyTestView:
    """What came of the cases of a policy's author, in the order of the files."""

    results: tuple["CaseResult", ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def failed(self) -> tuple["CaseResult", ...]:
        """Those in which something was not as expected."""
        return tuple(result for result in self.results if not result.passed)
