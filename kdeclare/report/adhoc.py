"""The results of ad hoc commands as text, and as JSON with a schema."""

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from enum import StrEnum
from typing import Annotated, Any, Protocol

from pydantic import Field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.documents import Opaque, publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.run import ApplyResult
from kdeclare.report.elements.diagnostics_text import (
    render_diagnostics,
    render_policies,
    select_notable_verdicts,
)
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_duration, sanitize_for_terminal
from kdeclare.report.outcome import run_outcome
from kdeclare.report.run.documents import RunDocument, build_run_document


class ItemOutcome(StrEnum):
    """The outcome of an ad hoc command for one resource."""

    CREATED = "created"
    ALTERED = "altered"
    DELETED = "deleted"
    ONGOING = "moving"  # accepted, and still in progress in the system
    UNCHANGED = "unchanged"
    LEFT_OUT = "left-out"  # --if-exists, --if-not-exists
    DENIED = "denied"
    FAILED = "failed"
    STALE = "stale"  # changed by a different client between plan and request
    UNKNOWN = "unknown"  # sent, outcome not known yet
    NOT_BEGUN = "not-begun"


CHANGED_OUTCOMES = frozenset(
    {ItemOutcome.CREATED, ItemOutcome.ALTERED, ItemOutcome.DELETED, ItemOutcome.ONGOING}
)
"""The outcomes of resources that were changed."""
SUCCESS_OUTCOMES = CHANGED_OUTCOMES | {ItemOutcome.UNCHANGED, ItemOutcome.LEFT_OUT}
"""The outcomes that do not cause an error exit code."""


class ItemSummary(Protocol):
    """A provider's summary of a resource, for the result of an ad hoc command.

    Providers must implement the summary as a dataclass, because JSON documents contain it.
    """

    def describe(self) -> str:
        """Return the summary as text that is safe to print."""


@dataclass(frozen=True, slots=True)
class AdhocLabels:
    """A provider's labels and hints for the results of ad hoc commands.

    ongoing: the label of a resource whose change is still in progress in the system.
    follow_hint: a hint on how to follow the progress.
    look_hint: a hint on how to show the current state of the resources.
    """

    ongoing: str = "in progress"
    follow_hint: str = ""
    look_hint: str = ""


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The result of an ad hoc command for one resource.

    why: a sentence that explains a failure, or why nothing was done.
    unlike: descriptions of the requested values that were still not visible in the metadata when the
        verification timed out.
    seen: the state of the resource after the command; None if the provider has no summary, or if the resource
        does not exist.
    """

    schema_name = "ItemDocument"

    resource: str
    outcome: Annotated[ItemOutcome, Field(serialization_alias="result")]
    why: Annotated[str, Field(serialization_alias="message")] = ""
    unlike: Annotated[
        tuple[str, ...],
        Field(
            description="The requested values that were not visible in the metadata before "
            "--verify-timeout expired.",
            serialization_alias="not_seen",
        ),
    ] = ()
    seen: Opaque[ItemSummary | None] = None


@dataclass(frozen=True, slots=True)
class AdhocResult:
    """The result of an ad hoc command for all resources.

    run: the result of the run; None if all requests failed or were skipped before planning.
    failed: the diagnostics of requests that failed before planning, by resource.
    verified_s: the number of seconds until the changes were visible; None if nothing was changed or verified.
    written: the paths of the manifests that the command wrote.
    beforehand: the diagnostics that were printed before the confirmation.
    notices: the diagnostics to print after the results.
    words: the provider's labels and hints.
    """

    run: ApplyResult | None
    items: tuple[ItemResult, ...]
    failed: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    verified_s: float | None = None
    written: tuple[str, ...] = ()
    beforehand: tuple[Diagnostic, ...] = ()
    notices: tuple[Diagnostic, ...] = ()
    words: AdhocLabels = field(default_factory=AdhocLabels)


def compute_adhoc_exit_code(view: AdhocResult) -> ExitCode:
    """Return the exit code of an ad hoc command. Failures take precedence over denials.

    PARTIAL: some requests failed, or some changes are not visible.
    ERROR: all requests failed, and nothing was changed.
    """
    exit_code = run_outcome(view.run).exit_code if view.run else ExitCode.OK
    failed_items = [item for item in view.items if item.outcome is ItemOutcome.FAILED]
    results = view.run.results.values() if view.run else ()
    has_changes = any(result.had_effect for result in results)
    if failed_items and len(failed_items) == len(view.items):
        return ExitCode.PARTIAL if has_changes else ExitCode.ERROR
    is_incomplete = (
        failed_items or any(item.unlike for item in view.items) or any(d.is_error for d in view.notices)
    )
    if exit_code in (ExitCode.OK, ExitCode.DENIED) and is_incomplete:
        return ExitCode.PARTIAL
    return exit_code


@dataclass(frozen=True, slots=True)
class AdhocDocument:
    """The result of an ad hoc command."""

    exit_code: Annotated[int, Field(description="The exit code of the command.")]
    results: tuple[ItemResult, ...]
    verified_seconds: Annotated[
        float | None,
        Field(
            description="The number of seconds until all changes were visible, or until --verify-timeout "
            "expired; null if nothing was changed or verified."
        ),
    ]
    written: Annotated[tuple[str, ...], Field(description="The paths of the written manifests.")]
    run: Annotated[
        RunDocument | None, Field(description="null if all requests failed or were skipped before planning.")
    ]
    diagnostics: tuple[Diagnostic, ...]


def build_adhoc_document(view: AdhocResult, seconds: float | None = None) -> AdhocDocument:
    """Build the JSON document of an ad hoc command (docs/schemas/by-hand.schema.json).

    seconds: the duration of the run; None if unknown.
    """
    unplanned = [problem for problems in view.failed.values() for problem in problems]
    blocking_diagnostics = (
        [problem for problem in view.run.plan.diagnostics if problem.is_blocking] if view.run else []
    )
    return AdhocDocument(
        exit_code=int(compute_adhoc_exit_code(view)),
        results=view.items,
        verified_seconds=view.verified_s,
        written=view.written,
        run=build_run_document(view.run, seconds=seconds) if view.run else None,
        diagnostics=tuple(
            dict.fromkeys((*unplanned, *blocking_diagnostics, *view.beforehand, *view.notices))
        ),
    )


def build_adhoc_schema(summary_type: type) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON output of an ad hoc command.

    summary_type: the provider's `ItemSummary` class.
    """
    holder = make_dataclass("Holder", [("seen", summary_type)])
    schemas = publish_schemas({"by hand": AdhocDocument, "seen": holder})
    schema, reference = schemas["by hand"], schemas["seen"]["properties"]["seen"]
    definitions = schema["$defs"] | schemas["seen"]["$defs"]
    definitions["ItemDocument"]["properties"]["seen"] = {"anyOf": [reference, {"type": "null"}]}
    return schema | {"$defs": dict(sorted(definitions.items()))}


_OUTCOME_LABELS = {
    ItemOutcome.CREATED: "created",
    ItemOutcome.ALTERED: "altered",
    ItemOutcome.DELETED: "deleted",
    ItemOutcome.UNCHANGED: "already up to date",
    ItemOutcome.LEFT_OUT: "skipped",
    ItemOutcome.DENIED: "denied",
    ItemOutcome.FAILED: "failed",
    ItemOutcome.STALE: "not applied, because another client has changed it",
    ItemOutcome.UNKNOWN: "outcome unknown",
    ItemOutcome.NOT_BEGUN: "not started",
}


def render_adhoc_text(view: AdhocResult, style: Style = PLAIN) -> str:
    """Render the result of an ad hoc command as text that ends in a newline.

    If all requests failed before planning, the failures are omitted, because the caller prints their
    diagnostics.
    """
    items = (
        view.items if view.run else [item for item in view.items if item.outcome is not ItemOutcome.FAILED]
    )
    width = max((len(sanitize_for_terminal(item.resource)) for item in items), default=0)
    lines = [_render_item(item, view, width, style) for item in items]
    blocks = ["".join(f"{line}\n" for line in lines)]
    if view.run is not None:
        notable_verdicts = select_notable_verdicts(view.run.plan.verdicts)
        blocks.append(
            render_policies(view.run.plan.verdicts, notable_verdicts, style) if notable_verdicts else ""
        )
        blocks.append(render_diagnostics(view.run.diagnostics, style))
    blocks.append(render_diagnostics(view.notices, style))
    blocks.append(_render_footer(view, style))
    return "\n".join(block for block in blocks if block)


def _render_item(item: ItemResult, view: AdhocResult, width: int, style: Style) -> str:
    symbol, paint = ("✓", style.green) if item.outcome in CHANGED_OUTCOMES else ("·", style.dim)
    if item.outcome not in SUCCESS_OUTCOMES:
        symbol, paint = "✗", style.red
    elif item.unlike:
        symbol, paint = "?", style.yellow
    unverified_text = ", ".join(map(sanitize_for_terminal, item.unlike))
    notes = [
        _OUTCOME_LABELS.get(item.outcome, view.words.ongoing),
        item.seen.describe() if item.seen else "",
        f"not visible yet: {unverified_text}" if unverified_text else "",
        sanitize_for_terminal(item.why),
    ]
    return (
        f"{paint(symbol)} {sanitize_for_terminal(item.resource):<{width}}  "
        f"{'; '.join(word for word in notes if word)}"
    )


def _render_footer(view: AdhocResult, style: Style) -> str:
    lines = []
    if view.verified_s is not None:
        is_unverified = any(item.unlike for item in view.items)
        wait_time = format_duration(view.verified_s)
        lines.append(
            style.yellow(f"Some changes are not visible in the metadata after {wait_time}.")
            if is_unverified
            else style.dim(f"Visible in the cluster after {wait_time}.")
        )
    lines += [f"Written: {sanitize_for_terminal(path)}" for path in view.written]
    run = view.run
    if run is not None and run.run_id:
        rollback_note = "" if _is_irreversible(run) else " Run 'kdeclare rollback' to undo this run."
        lines.append(style.dim(f"Run {sanitize_for_terminal(run.run_id)}.{rollback_note}"))
        if view.words.follow_hint and any(item.outcome is ItemOutcome.ONGOING for item in view.items):
            lines.append(view.words.follow_hint)
    if compute_adhoc_exit_code(view) is ExitCode.INTERRUPTED:
        lines.append(
            "Interrupted. The next 'kdeclare plan' or 'kdeclare apply' recovers the operations in progress."
        )
    return "".join(f"{line}\n" for line in lines)


def _is_irreversible(run: ApplyResult) -> bool:
    return all(operation.irreversible is not None for operation in run.plan.operations)
