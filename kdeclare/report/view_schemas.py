"""The JSON Schemas of what status, history and validate print, and of a command that failed as a whole."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import CLOSED, DiagnosticDocument, SummaryDocument
from kdeclare.report.run_schema import CountsDocument, Ended
from kdeclare.report.schemas import schemas_of

Moment = Annotated[str | None, Field(description="UTC, ISO 8601.")]


@with_config(CLOSED)
class RunSummaryDocument(TypedDict):
    """One run in a list."""

    run_id: str
    started: str
    ended: Moment
    outcome: Literal["done", "denied", "partial", "error", "interrupted", "unfinished", "unreadable"]
    user: str
    command: str
    plan_id: str
    undoes: str | None
    undone_by: str | None
    overridden: Annotated[int, Field(description="How many denials of policies it did not heed.")]
    summary: SummaryDocument
    adopted: Annotated[int, Field(description="Resources taken into ownership without a change.")]
    operations: Annotated[int, Field(description="How many the plan has.")]
    counts: CountsDocument
    problem: Annotated[str, Field(description="Why the run cannot be read; empty if it can.")]


@with_config(CLOSED)
class StepDocument(TypedDict):
    """One operation of a run; ``status`` null: never begun, or nobody knows."""

    id: str
    verb: str
    resource: str
    status: Ended | None
    begun: Moment
    ended: Moment
    error: str | None
    message: str
    cause: str | None


@with_config(CLOSED)
class UnfinishedDocument(RunSummaryDocument):
    """A run without an end."""

    unknown: list[StepDocument]
    not_begun: int


@with_config(CLOSED)
class OverrideDocument(TypedDict):
    """One denial of a policy that a run did not heed."""

    policy: str
    resource: str
    topic: Annotated[str | None, Field(description="Where it is not the resource itself.")]
    reason: str
    principal: Annotated[
        str | None,
        Field(description="Whom the brokers took the person for; null where they authenticate nobody."),
    ]


@with_config(CLOSED)
class RunDetailDocument(RunSummaryDocument):
    """One run in full."""

    format_version: Literal["1.0"]
    steps: list[StepDocument]
    overrides: list[OverrideDocument]
    diagnostics: list[DiagnosticDocument]


@with_config(CLOSED)
class HistoryDocument(TypedDict):
    """Runs, the latest first."""

    format_version: Literal["1.0"]
    runs: list[RunSummaryDocument]
    older: Annotated[int, Field(description="How many more runs there are that --limit leaves out.")]


@with_config(CLOSED)
class DifferenceDocument(TypedDict):
    """One place in which two plans differ."""

    resource: str
    path: str
    a: Any
    b: Any


@with_config(CLOSED)
class HistoryDiffDocument(TypedDict):
    """How plan b differs from plan a."""

    format_version: Literal["1.0"]
    a: str
    b: str
    differences: list[DifferenceDocument]


@with_config(CLOSED)
class LockDocument(TypedDict):
    """Who holds the lock."""

    who: str
    pid: int
    what: str
    since: str


@with_config(CLOSED)
class MoveDocument(TypedDict):
    """One partition that is being moved."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    target: list[int]
    run_id: str | None
    waits_for: list[int]
    down: list[int]


@with_config(CLOSED)
class ProgressDocument(TypedDict):
    """How far moves have got; bytes are those of the copies that are being made."""

    partitions: int
    partitions_total: int
    bytes: int
    bytes_total: int
    bytes_per_second: float | None
    seconds_left: float | None
    stalled: list[str]


@with_config(CLOSED)
class StatusDocument(TypedDict):
    """What goes on right now."""

    format_version: Literal["1.0"]
    project: str
    env: str
    cluster: str
    lock: LockDocument | None
    unfinished: list[UnfinishedDocument]
    moves: list[MoveDocument]
    progress: ProgressDocument | None
    throttles: int
    last: RunSummaryDocument | None


@with_config(CLOSED)
class ValidationDocument(TypedDict):
    """What reading the manifests found."""

    format_version: Literal["1.0"]
    valid: bool
    files: int
    resources: int
    diagnostics: list[DiagnosticDocument]


@with_config(CLOSED)
class ProblemDocument(TypedDict):
    """A command that failed as a whole."""

    format_version: Literal["1.0"]
    outcome: Literal["error"]
    exit_code: int
    diagnostics: list[DiagnosticDocument]


_DOCUMENTS: Mapping[str, Any] = {
    "history": HistoryDocument,
    "history-run": RunDetailDocument,
    "history-diff": HistoryDiffDocument,
    "problem": ProblemDocument,
    "status": StatusDocument,
    "validation": ValidationDocument,
}


def view_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of(_DOCUMENTS)
