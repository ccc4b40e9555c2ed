"""What ad hoc commands that change something print with ``--format json``, and its JSON Schema."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.plan_document import diagnostic_document
from kdeclare.engine.planning.planfile_schema import CLOSED, DiagnosticDocument
from kdeclare.report.adhoc_views import AdhocResult, ItemResult, adhoc_exit_code
from kdeclare.report.json_output import FORMAT_VERSION, run_document
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
class ItemDocument(TypedDict):
    """What came of what was asked of one resource."""

    resource: str
    result: Result
    message: str
    not_seen: Annotated[
        list[str], Field(description="What metadata did not show before --verify-timeout was over.")
    ]
    seen: dict[str, Any] | None


@with_config(CLOSED)
class AdhocDocument(TypedDict):
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


def adhoc_schema(seen: type) -> dict[str, Any]:
    """Return the JSON Schema (2020-12); ``docs/schemas/by-hand.schema.json`` is its text.

    seen: the TypedDict of what a provider says of a resource afterwards (`Summary.to_json`).
    """
    schema = TypeAdapter(AdhocDocument).json_schema()
    inner = TypeAdapter(seen).json_schema()
    definitions = {**schema["$defs"], inner["title"]: inner}
    item = definitions["ItemDocument"]["properties"]
    item["seen"] = {"anyOf": [{"$ref": f"#/$defs/{inner['title']}"}, {"type": "null"}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "$defs": {name: definitions[name] for name in sorted(definitions)},
        "title": "kdeclare by hand, format 1.0",
    }


def adhoc_document(view: AdhocResult, seconds: float | None = None) -> dict[str, Any]:
    """Return a result for each resource, and the run (docs/schemas/by-hand.schema.json)."""
    failed = [problem for problems in view.failed.values() for problem in problems]
    blocking = [problem for problem in view.run.plan.diagnostics if problem.blocks] if view.run else []
    told = dict.fromkeys((*failed, *blocking, *view.beforehand, *view.notices))
    return {
        "format_version": FORMAT_VERSION,
        "exit_code": int(adhoc_exit_code(view)),
        "results": [_item(item) for item in view.items],
        "verified_seconds": view.verified_s,
        "written": list(view.written),
        "run": run_document(view.run, seconds=seconds) if view.run else None,
        "diagnostics": [diagnostic_document(problem) for problem in told],
    }


def _item(item: ItemResult) -> dict[str, Any]:
    seen = item.seen
    return {
        "resource": item.resource,
        "result": item.outcome.value,
        "message": item.why,
        "not_seen": list(item.unlike),
        "seen": None if seen is None else seen.to_json(),
    }
