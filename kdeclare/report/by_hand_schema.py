"""The JSON Schema of what `topic` and `config` print with ``--format json`` when they change something."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import CLOSED, DiagnosticDocument
from kdeclare.report.run_schema import RunDocument

Result = Literal[
    "created",
    "altered",
    "deleted",
    "moving",
    "unchanged",
    "left-out",
    "denied",
    "failed",
    "stale",
    "unknown",
    "not-begun",
]


@with_config(CLOSED)
class SeenDocument(TypedDict):
    """A topic as metadata has it afterwards."""

    partitions: int
    factors: Annotated[list[int], Field(description="Replicas a partition: each size once.")]
    replicas: Annotated[int, Field(description="Over all partitions.")]
    in_sync: Annotated[int, Field(description="Those of them that the leaders call in sync.")]
    leaderless: int


@with_config(CLOSED)
class ItemDocument(TypedDict):
    """What came of what was asked of one resource."""

    resource: str
    result: Result
    message: str
    not_seen: Annotated[
        list[str], Field(description="What metadata did not show before --verify-timeout was over.")
    ]
    seen: SeenDocument | None


@with_config(CLOSED)
class HandDocument(TypedDict):
    """The result of a command by hand."""

    format_version: Literal["1.0"]
    exit_code: Annotated[int, Field(description="The same as the exit status of the process.")]
    results: list[ItemDocument]
    verified_seconds: Annotated[
        float | None, Field(description="Until all was seen, or time was up; null where nothing was done.")
    ]
    written: Annotated[list[str], Field(description="Manifests that were written.")]
    run: Annotated[RunDocument | None, Field(description="null where nothing was left to plan.")]
    diagnostics: list[DiagnosticDocument]


def by_hand_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12); ``docs/schemas/by-hand.schema.json`` is its text."""
    schema = TypeAdapter(HandDocument).json_schema()
    schema["title"] = "kdeclare by hand, format 1.0"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
