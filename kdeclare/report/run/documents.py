"""The JSON documents and the JSON Schemas of runs and of the current status."""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, with_config
from typing_extensions import TypedDict

from kdeclare.core.documents import (
    FORMAT_VERSION,
    Diagnostics,
    OneOf,
    build_document,
    dump_document,
    publish_schemas,
)
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import ClusterRef, Summary
from kdeclare.core.plans.run import ApplyResult, MoveProgress, OperationResult, Status
from kdeclare.core.plans.state import LockInfo
from kdeclare.engine.planning.plan_document import compute_plan_id
from kdeclare.engine.planning.planfile_schema import CLOSED, SerializedVerdict
from kdeclare.report.outcome import count_adopted, run_outcome
from kdeclare.report.run.history_text import HistoryDiff
from kdeclare.report.run.state_views import (
    MigratedState,
    OwnedResource,
    OwnedResources,
    OwnershipChange,
    OwnershipTransfer,
)
from kdeclare.report.run.views import (
    AbandonedRun,
    History,
    ProblemDocument,
    PrunedRuns,
    RunDetail,
    RunEffects,
    RunSummary,
    StatusCounts,
    StatusView,
    UnfinishedRun,
    ValidationView,
)


@dataclass(frozen=True, slots=True)
class OperationResultDocument:
    """The result of one operation. For a skipped operation, ``cause`` is the operation that failed."""

    schema_name = "OperationResultDocument"

    id: str
    verb: str
    resource: str
    status: Status
    error: Annotated[
        str | None, Field(description="The name of the system's error, or the code of the diagnostic.")
    ]
    message: str
    cause: str | None


@dataclass(frozen=True, slots=True)
class RunDocument:
    """The result of an apply or a rollback."""

    format_version: Literal["1.0"]
    run_id: Annotated[str | None, Field(description="null if there was nothing to run.")]
    outcome: Annotated[str, OneOf("done", "denied", "partial", "error", "interrupted")]
    headline: str
    exit_code: Annotated[int, Field(description="The exit code of the command.")]
    interrupted: bool
    project: str
    env: str
    cluster: ClusterRef
    plan_id: str
    undoes: str | None
    seconds: float | None
    summary: Annotated[Summary, Field(description="The planned changes.")]
    adopted: Annotated[int, Field(description="The number of resources adopted without a change.")]
    counts: StatusCounts
    operations: tuple[OperationResultDocument, ...]
    verdicts: Annotated[
        tuple[SerializedVerdict, ...],
        Field(description="The verdicts of the plan, and denials by policies that the systems enforce."),
    ]
    diagnostics: Diagnostics
    effects: RunEffects


def build_run_document(
    run: ApplyResult, known_plan_id: str | None = None, seconds: float | None = None
) -> RunDocument:
    """Build the JSON document of an apply or a rollback (docs/schemas/run.schema.json).

    known_plan_id: the id of a plan that was read from a file. If it is None, the id of the run's plan is
        used.
    seconds: the duration of the run; None if unknown.
    """
    outcome, plan = run_outcome(run), run.plan
    operations = tuple(_build_operation_document(o, run.results.get(o.id)) for o in plan.operations)
    return RunDocument(
        format_version=FORMAT_VERSION,
        run_id=run.run_id,
        outcome=outcome.status,
        headline=outcome.headline,
        exit_code=int(outcome.exit_code),
        interrupted=run.interrupted,
        project=plan.project,
        env=plan.env,
        cluster=plan.cluster,
        plan_id=known_plan_id or run.identity or compute_plan_id(plan),
        undoes=plan.undoes,
        seconds=seconds,
        summary=plan.summary,
        adopted=count_adopted(plan),
        counts=Counter(operation.status for operation in operations),
        operations=operations,
        verdicts=run.verdicts,
        diagnostics=(*plan.diagnostics, *run.diagnostics),
        effects=run.effects,
    )


def _build_operation_document(
    operation: Operation, result: OperationResult | None
) -> OperationResultDocument:
    known_result = result or OperationResult(operation.id, Status.INTERRUPTED)
    id_, verb, resource = operation.id, operation.verb, str(operation.resource)
    return OperationResultDocument(
        id_, verb, resource, known_result.status, known_result.error, known_result.message, known_result.cause
    )


@with_config(CLOSED)
class MoveDocument(TypedDict):
    """One partition with a reassignment in progress."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    target: list[int]
    run_id: str | None
    waits_for: list[int]
    down: list[int]


@dataclass(frozen=True, slots=True)
class WorkInProgress:
    """An operation that a system has not finished yet."""

    resource: str
    verb: str
    run_id: str | None


@dataclass(frozen=True, slots=True)
class StatusDocument:
    """The current status of an environment."""

    project: str
    env: str
    cluster: str
    lock: LockInfo | None
    unfinished: tuple[UnfinishedRun, ...]
    moves: tuple[Annotated[Mapping[str, JsonValue], PlainSerializer(dict, return_type=MoveDocument)], ...]
    work: Annotated[
        tuple[WorkInProgress, ...],
        Field(description="Work in progress that the other fields do not describe."),
    ]
    progress: MoveProgress | None
    throttles: int
    last: RunSummary | None


def dump_status(view: StatusView) -> dict[str, JsonValue]:
    """Build the JSON document of the current status. Providers can add more fields."""
    progress = next((activity.progress for activity in view.activities if activity.progress), None)
    moves = tuple(work.document for work in view.ongoing if work.document)
    other_work = tuple(
        WorkInProgress(work.name, work.verb, work.run_id) for work in view.ongoing if not work.document
    )
    document = dump_document(
        build_document(StatusDocument, view, moves=moves, work=other_work, progress=progress, throttles=0)
    )
    for activity in view.activities:
        document |= activity.fields
    return document


@dataclass(frozen=True, slots=True)
class LockStatusDocument:
    """The lock of a state: the process that holds the lock, if any."""

    lock: Annotated[LockInfo | None, Field(description="null if the state is not locked.")]


def build_run_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of all documents about runs, by document name; see `publish_schemas`."""
    return publish_schemas(
        {
            "history": History,
            "history-diff": HistoryDiff,
            "history-run": RunDetail,
            "lock": LockStatusDocument,
            "problem": ProblemDocument,
            "run": RunDocument,
            "state-abandon": AbandonedRun,
            "state-change": OwnershipChange,
            "state-list": OwnedResources,
            "state-migrate": MigratedState,
            "state-prune": PrunedRuns,
            "state-show": OwnedResource,
            "state-transfer": OwnershipTransfer,
            "status": StatusDocument,
            "validation": ValidationView,
        }
    )
