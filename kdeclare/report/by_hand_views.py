"""What came of a command by hand, resource by resource, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.exits import ExitCode
from kdeclare.core.run import RunResult
from kdeclare.report.outcome import run_outcome


class Came(StrEnum):
    """What came of what was asked of one resource."""

    CREATED = "created"
    ALTERED = "altered"
    DELETED = "deleted"
    MOVING = "moving"  # accepted, and replicas are still on their way
    UNCHANGED = "unchanged"
    LEFT_OUT = "left-out"  # --if-exists, --if-not-exists
    DENIED = "denied"
    FAILED = "failed"
    STALE = "stale"  # changed by someone else between plan and request
    UNKNOWN = "unknown"  # sent, and nobody knows yet
    NOT_BEGUN = "not-begun"


DEEDS = frozenset({Came.CREATED, Came.ALTERED, Came.DELETED, Came.MOVING})
"""What changed something."""
GOOD = DEEDS | {Came.UNCHANGED, Came.LEFT_OUT}
"""What is no reason for another exit code than 0."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A topic as metadata has it afterwards.

    factors: replicas a partition, each size once, sorted. in_sync, replicas: counted over the partitions;
    in sync is what each leader says of its own partition. leaderless: partitions without a leader.
    """

    partitions: int
    factors: tuple[int, ...]
    replicas: int
    in_sync: int
    leaderless: int


@dataclass(frozen=True, slots=True)
class Item:
    """One resource.

    why: a sentence about what did not go well, or why nothing was done. unlike: what was not seen to be as
    it should be before time was up. seen: None for what is no topic, or is not there.
    """

    resource: str
    came: Came
    why: str = ""
    unlike: tuple[str, ...] = ()
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class HandView:
    """All of it.

    run: None where nothing was left to plan. failed: the diagnostics of what was never planned.
    verified_s: seconds until what was done was seen to be so; None where nothing was done or looked at.
    written: manifests that were written, as paths. beforehand: what was told before anybody was asked.
    notices: what else should be known afterwards.
    """

    run: RunResult | None
    items: tuple[Item, ...]
    failed: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    verified_s: float | None = None
    written: tuple[str, ...] = ()
    beforehand: tuple[Diagnostic, ...] = ()
    notices: tuple[Diagnostic, ...] = ()


def hand_exit_code(view: HandView) -> ExitCode:
    """What failed weighs more than what was denied; nothing but failures is an error."""
    code = run_outcome(view.run).exit_code if view.run else ExitCode.OK
    failed = [item for item in view.items if item.came is Came.FAILED]
    results = view.run.results.values() if view.run else ()
    something_done = any(result.is_good for result in results)
    if failed and len(failed) == len(view.items):
        return ExitCode.PARTIAL if something_done else ExitCode.ERROR
    lacking = failed or any(item.unlike for item in view.items) or any(d.is_error for d in view.notices)
    if code in (ExitCode.OK, ExitCode.DENIED) and lacking:
        return ExitCode.PARTIAL
    return code
