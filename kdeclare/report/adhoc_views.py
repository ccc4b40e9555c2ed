"""What came of an ad hoc command, resource by resource, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.exits import ExitCode
from kdeclare.core.jsontypes import Json
from kdeclare.core.run import RunResult
from kdeclare.report.outcome import run_outcome


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
    """What a provider says of a resource as it is afterwards."""

    def describe(self) -> str:
        """Return it in words, printable."""

    def to_json(self) -> Json:
        """Return it as a document."""


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
    """One resource.

    why: a sentence about what did not go well, or why nothing was done. unlike: what was not seen to be as
    it should be before time was up. seen: None where nothing is to be said of it, or it is not there.
    """

    resource: str
    outcome: Outcome
    why: str = ""
    unlike: tuple[str, ...] = ()
    seen: Summary | None = None


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
