"""The result of an ad hoc command, resource by resource: for people, and as JSON with its schema."""

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from enum import StrEnum
from typing import Annotated, Any, Protocol

from pydantic import Field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.documents import Opaque, publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.run import RunResult
from kdeclare.report.elements.diagnostics_text import diagnostics_text, policies_text, spoken
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, duration
from kdeclare.report.outcome import run_outcome
from kdeclare.report.run.documents import RunDocument, describe_run


class Outcome(StrEnum):
    """What came of what was asked of one resource."""

    CREATED = "created"
    ALTERED = "altered"
    DELETED = "deleted"
    ONGOING = "moving"  # accepted, and work on it goes on
    UNCHANGED = "unchanged"
    LEFT_OUT = "left-out"  # --if-exists, --if-not-exists
    DENIED = "denied"
    FAILED = "failed"
    STALE = "stale"  # changed by someone else between plan and request
    UNKNOWN = "unknown"  # sent, and nobody knows yet
    NOT_BEGUN = "not-begun"


DEEDS = frozenset({Outcome.CREATED, Outcome.ALTERED, Outcome.DELETED, Outcome.ONGOING})
"""What changed something."""
GOOD = DEEDS | {Outcome.UNCHANGED, Outcome.LEFT_OUT}
"""What is no reason for another exit code than 0."""


class Summary(Protocol):
    """What a provider says of a resource as it is afterwards: a dataclass, as documents are."""

    def describe(self) -> str:
        """Return it in words, printable."""


@dataclass(frozen=True, slots=True)
class AdhocWords:
    """What a provider calls what happens.

    ongoing: of a resource on which work goes on in the system. follow_hint: how to follow such work.
    look_hint: how to look at what is there.
    """

    ongoing: str = "work on it goes on"
    follow_hint: str = ""
    look_hint: str = ""


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What came of what was asked of one resource.

    why: a sentence about what did not go well, or why nothing was done. unlike: what was not seen to be as
    it should be. seen: None where nothing is to be said of it, or it is not there.
    """

    schema_name = "ItemDocument"

    resource: str
    outcome: Annotated[Outcome, Field(serialization_alias="result")]
    why: Annotated[str, Field(serialization_alias="message")] = ""
    unlike: Annotated[
        tuple[str, ...],
        Field(
            description="What metadata did not show before --verify-timeout was over.",
            serialization_alias="not_seen",
        ),
    ] = ()
    seen: Opaque[Summary | None] = None


@dataclass(frozen=True, slots=True)
class AdhocResult:
    """All of it.

    run: None where nothing was left to plan. failed: the diagnostics of what was never planned.
    verified_s: seconds until what was done was seen to be so; None where nothing was done or looked at.
    written: manifests that were written, as paths. beforehand: what was told before anybody was asked.
    notices: what else should be known afterwards. words: of the provider.
    """

    run: RunResult | None
    items: tuple[ItemResult, ...]
    failed: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    verified_s: float | None = None
    written: tuple[str, ...] = ()
    beforehand: tuple[Diagnostic, ...] = ()
    notices: tuple[Diagnostic, ...] = ()
    words: AdhocWords = field(default_factory=AdhocWords)


def adhoc_exit_code(view: AdhocResult) -> ExitCode:
    """What failed weighs more than what was denied; nothing but failures is an error."""
    code = run_outcome(view.run).exit_code if view.run else ExitCode.OK
    failed = [item for item in view.items if item.outcome is Outcome.FAILED]
    results = view.run.results.values() if view.run else ()
    something_done = any(result.is_good for result in results)
    if failed and len(failed) == len(view.items):
        return ExitCode.PARTIAL if something_done else ExitCode.ERROR
    lacking = failed or any(item.unlike for item in view.items) or any(d.is_error for d in view.notices)
    if code in (ExitCode.OK, ExitCode.DENIED) and lacking:
        return ExitCode.PARTIAL
    return code


@dataclass(frozen=True, slots=True)
class AdhocDocument:
    """The result of a command by hand."""

    exit_code: Annotated[int, Field(description="The same as the exit status of the process.")]
    results: tuple[ItemResult, ...]
    verified_seconds: Annotated[
        float | None, Field(description="Until all was seen, or time was up; null where nothing was done.")
    ]
    written: Annotated[tuple[str, ...], Field(description="Manifests that were written.")]
    run: Annotated[RunDocument | None, Field(description="null where nothing was left to plan.")]
    diagnostics: tuple[Diagnostic, ...]


def describe_adhoc(view: AdhocResult, seconds: float | None = None) -> AdhocDocument:
    """Return a result for each resource, and the run (docs/schemas/by-hand.schema.json)."""
    failed = [problem for problems in view.failed.values() for problem in problems]
    blocking = [problem for problem in view.run.plan.diagnostics if problem.blocks] if view.run else []
    return AdhocDocument(
        exit_code=int(adhoc_exit_code(view)),
        results=view.items,
        verified_seconds=view.verified_s,
        written=view.written,
        run=describe_run(view.run, seconds=seconds) if view.run else None,
        diagnostics=tuple(dict.fromkeys((*failed, *blocking, *view.beforehand, *view.notices))),
    )


def adhoc_schema(seen: type) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) with what a provider says of a resource afterwards, a `Summary`."""
    holder = make_dataclass("Holder", [("seen", seen)])
    found = publish_schemas({"by hand": AdhocDocument, "seen": holder})
    schema, reference = found["by hand"], found["seen"]["properties"]["seen"]
    definitions = schema["$defs"] | found["seen"]["$defs"]
    definitions["ItemDocument"]["properties"]["seen"] = {"anyOf": [reference, {"type": "null"}]}
    return schema | {"$defs": dict(sorted(definitions.items()))}


_WORDS = {
    Outcome.CREATED: "created",
    Outcome.ALTERED: "altered",
    Outcome.DELETED: "deleted",
    Outcome.UNCHANGED: "in order already",
    Outcome.LEFT_OUT: "left out",
    Outcome.DENIED: "denied",
    Outcome.FAILED: "failed",
    Outcome.STALE: "changed by someone else meanwhile, left alone",
    Outcome.UNKNOWN: "nobody knows yet",
    Outcome.NOT_BEGUN: "not begun",
}


def adhoc_text(view: AdhocResult, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line; empty where nothing is left but failures, told before."""
    items = view.items if view.run else [item for item in view.items if item.outcome is not Outcome.FAILED]
    width = max((len(clean(item.resource)) for item in items), default=0)
    lines = [_line(item, view, width, style) for item in items]
    blocks = ["".join(f"{line}\n" for line in lines)]
    if view.run is not None:
        said = spoken(view.run.plan.verdicts)
        blocks.append(policies_text(view.run.plan.verdicts, said, style) if said else "")
        blocks.append(diagnostics_text(view.run.diagnostics, style))
    blocks.append(diagnostics_text(view.notices, style))
    blocks.append(_last_lines(view, style))
    return "\n".join(block for block in blocks if block)


def _line(item: ItemResult, view: AdhocResult, width: int, style: Style) -> str:
    mark, paint = ("✓", style.green) if item.outcome in DEEDS else ("·", style.dim)
    if item.outcome not in GOOD:
        mark, paint = "✗", style.red
    elif item.unlike:
        mark, paint = "?", style.yellow
    unlike = ", ".join(map(clean, item.unlike))
    words = [
        _WORDS.get(item.outcome, view.words.ongoing),
        item.seen.describe() if item.seen else "",
        f"not seen yet: {unlike}" if unlike else "",
        clean(item.why),
    ]
    return f"{paint(mark)} {clean(item.resource):<{width}}  {'; '.join(word for word in words if word)}"


def _last_lines(view: AdhocResult, style: Style) -> str:
    lines = []
    if view.verified_s is not None:
        unseen = any(item.unlike for item in view.items)
        waited = duration(view.verified_s)
        lines.append(
            style.yellow(f"Metadata does not show all of it after {waited}.")
            if unseen
            else style.dim(f"Seen in the cluster after {waited}.")
        )
    lines += [f"Written: {clean(path)}" for path in view.written]
    run = view.run
    if run is not None and run.run_id:
        undoing = "" if _is_final(run) else "; 'kdeclare rollback' undoes it"
        lines.append(style.dim(f"Run {clean(run.run_id)}{undoing}."))
        if view.words.follow_hint and any(item.outcome is Outcome.ONGOING for item in view.items):
            lines.append(view.words.follow_hint)
    if adhoc_exit_code(view) is ExitCode.INTERRUPTED:
        lines.append("Interrupted; the next command settles what was under way.")
    return "".join(f"{line}\n" for line in lines)


def _is_final(run: RunResult) -> bool:
    """Whether nothing of it can be undone."""
    return all(operation.irreversible is not None for operation in run.plan.operations)
