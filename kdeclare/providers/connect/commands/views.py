"""What ``connect worker-config`` shows, as plain data: no secret is in it. The use-cases fill it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kdeclare.core.changes import FieldChange
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.exits import ExitCode
from kdeclare.core.jsontypes import Json
from kdeclare.providers.connect.worker_state import WorkerSeen
from kdeclare.providers.connect.workers.findings import OUT_OF_STEP
from kdeclare.providers.connect.workers.standing import IN_STEP


@dataclass(frozen=True, slots=True)
class OverridesView:
    """The overrides that workers share, secrets as ``(sensitive)``."""

    overrides: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker. step: `IN_STEP`, or why it does not run on the overrides as they are."""

    seen: WorkerSeen
    step: str

    @property
    def is_in_step(self) -> bool:
        """Whether it runs on the overrides as they are."""
        return self.step == IN_STEP


@dataclass(frozen=True, slots=True)
class WorkersView:
    """All workers at one time. diagnostics: who is silent, lags or differs, and what ends soon."""

    at: datetime
    keys: tuple[str, ...]
    workers: tuple[WorkerView, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictView:
    """What one worker says of proposed overrides; ``words`` is empty where it could apply them."""

    url: str
    words: str


@dataclass(frozen=True, slots=True)
class ProposalView:
    """Proposed overrides, and what every worker says of them. notices: what else should be known."""

    fields: tuple[FieldChange, ...]
    verdicts: tuple[VerdictView, ...]
    notices: tuple[Diagnostic, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether every worker could apply them."""
        return not any(verdict.words for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class ChangedView:
    """What came of a change. behind: who has not followed, and why, by URL. seconds: until all had."""

    fields: tuple[FieldChange, ...]
    workers: WorkersView
    seconds: float
    behind: Mapping[str, str] = field(default_factory=dict)


def workers_exit_code(view: WorkersView) -> ExitCode:
    """A worker that is silent, behind or shows another certificate than it should is a partial success."""
    return ExitCode.PARTIAL if any(d.code in OUT_OF_STEP for d in view.diagnostics) else ExitCode.OK


def proposal_exit_code(view: ProposalView) -> ExitCode:
    """What one worker refuses is refused."""
    return ExitCode.OK if view.is_good else ExitCode.ERROR


def changed_exit_code(view: ChangedView) -> ExitCode:
    """The change has been made, whoever has not followed."""
    return ExitCode.PARTIAL if view.behind else ExitCode.OK
