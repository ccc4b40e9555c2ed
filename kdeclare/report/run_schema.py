"""The JSON Schema of what apply and rollback print with ``--format json``."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import (
    CLOSED,
    ClusterDocument,
    DiagnosticDocument,
    SummaryDocument,
    VerdictDocument,
)

Ended = Literal["done", "started", "failed", "denied", "skipped", "stale", "unknown", "interrupted"]


@with_config(CLOSED)
class OperationResultDocument(TypedDict):
    """How one operation ended; ``cause`` is the operation whose failure made it be skipped."""

    id: str
    verb: str
    resource: str
    status: Ended
    error: Annotated[str | None, Field(description="Kafka's name of the error, or a diagnostic's code.")]
    message: str
    cause: str | None


@with_config(CLOSED)
class CountsDocument(TypedDict):
    """Operations by how they ended."""

    done: int
    started: int
    failed: int
    denied: Annotated[int, Field(description="Refused by a policy of the brokers.")]
    skipped: int
    stale: int
    unknown: int
    interrupted: int


@with_config(CLOSED)
class RunDocument(TypedDict):
    """The result of apply or rollback."""

    format_version: Literal["1.0"]
    run_id: Annotated[str | None, Field(description="null when there was nothing to run.")]
    outcome: Literal["done", "denied", "partial", "error", "interrupted"]
    headline: str
    exit_code: Annotated[int, Field(description="The same as the exit status of the process.")]
    interrupted: bool
    project: str
    env: str
    cluster: ClusterDocument
    plan_id: str
    undoes: str | None
    seconds: float | None
    summary: Annotated[SummaryDocument, Field(description="What the plan was to do.")]
    adopted: Annotated[int, Field(description="Resources taken into ownership without a change.")]
    counts: CountsDocument
    operations: list[OperationResultDocument]
    verdicts: Annotated[
        list[VerdictDocument],
        Field(description="Of the plan, and what the brokers' own policies refused during the run."),
    ]
    diagnostics: list[DiagnosticDocument]


def run_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12); ``docs/schemas/run.schema.json`` is its text."""
    schema = TypeAdapter(RunDocument).json_schema()
    schema["title"] = "kdeclare run, format 1.0"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
