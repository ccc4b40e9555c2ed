"""What a run did, for people: what went well in one line, what did not one by one, and how to go on."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import RunResult, Status
from kdeclare.core.provider.registry import OPERATION_TYPES
from kdeclare.report.elements.diagnostics_text import diagnostics_text, policies_text, spoken
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, duration, listed, plural
from kdeclare.report.outcome import Outcome, run_outcome

_FOLD = 20


@dataclass(frozen=True, slots=True)
class Ended:
    """One operation and how it ended, for people.

    cause: the operation whose failure kept this one from being begun.
    """

    name: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str = ""


def run_text(run: RunResult, style: Style = PLAIN, seconds: float | None = None) -> str:
    """The whole text, ending in a new line. ``seconds``: how long the run took, if known."""
    outcome = run_outcome(run)
    ended = _ended(run)
    blocks = [_headline(run, outcome, style, seconds), _verdicts(run, style), ended_text(ended, style)]
    blocks.append(diagnostics_text(run.diagnostics, style))
    blocks.append(_next(run, outcome, style))
    return "\n".join(block for block in blocks if block)


def deeds(verbs: Iterable[str]) -> str:
    """``2 topics created, 5 resources configured``."""
    counts = Counter(verbs)
    parts = []
    for verb, known in OPERATION_TYPES.items():
        if verb in counts and known.done_label is not None:
            count = counts.pop(verb)
            parts.append(plural(count, *known.done_label) if any(known.done_label) else "")
    return listed([*parts, *(f"{count:,} × {clean(verb)}" for verb, count in sorted(counts.items()))])


def ended_text(ended: Sequence[Ended], style: Style = PLAIN) -> str:
    """What did not end well, and moves that go on, one paragraph a way of ending."""
    sections: tuple[tuple[Status, str, str], ...] = (
        (Status.FAILED, style.red("Failed:"), style.red("✗")),
        (Status.DENIED, style.red("Denied by a policy of the brokers:"), style.red("✗")),
        (Status.STALE, style.yellow("Changed by someone else since it was planned, left alone:"), "!"),
        (Status.SKIPPED, style.yellow("Skipped, as something that it needs did not end well:"), "-"),
        (Status.UNKNOWN, style.yellow("Begun, but nobody has seen yet how it ended:"), "?"),
        (Status.INTERRUPTED, style.yellow("Not begun:"), "-"),
        (Status.STARTED, style.cyan("Goes on in the cluster:"), style.cyan("↻")),
    )
    blocks = []
    for status, title, mark in sections:
        items = [item for item in ended if item.status is status]
        if items:
            blocks.append("".join(f"{line}\n" for line in [title, *_items(items, mark, style)]))
    return "\n".join(blocks)


def _items(items: Sequence[Ended], mark: str, style: Style) -> list[str]:
    lines = []
    totals = Counter(item.error or item.cause for item in items)
    shown: Counter[str] = Counter()
    for item in items:
        kind = item.error or item.cause
        if totals[kind] > _FOLD and shown[kind] >= _FOLD // 2:
            continue
        shown[kind] += 1
        lines.append(f"  {mark} {item.name}" + (f"  {style.dim('← ' + item.cause)}" if item.cause else ""))
        error = item.error if item.status is Status.FAILED or not item.message else None
        words = ": ".join(clean(part) for part in (error, item.message) if part)
        if words:
            lines.append(f"      {words}")
        if totals[kind] > _FOLD and shown[kind] == _FOLD // 2:
            rest = totals[kind] - shown[kind]
            lines.append(style.dim(f"  … and {rest:,} more{f' ({kind})' if kind else ''}"))
    return lines


def _headline(run: RunResult, outcome: Outcome, style: Style, seconds: float | None) -> str:
    paint = {ExitCode.OK: style.green, ExitCode.DENIED: style.yellow}.get(outcome.exit_code, style.red)
    lines = [paint(outcome.headline)]
    verbs = (o.verb for o in run.plan.operations if _status(run, o.id) is Status.DONE)
    did = deeds(verbs)
    if did:
        lines.append(f"In {duration(seconds)}: {did}." if seconds is not None else f"{did}.")
    if run.run_id:
        lines.append(style.dim(f"Run {clean(run.run_id)}"))
    return "".join(f"{line}\n" for line in lines)


def _verdicts(run: RunResult, style: Style) -> str:
    """What policies said of the plan; what the brokers' refused during the run is said beside it."""
    said = spoken(run.plan.verdicts)
    return policies_text(run.plan.verdicts, said, style) if said else ""


def _can_go_on(run: RunResult) -> bool:
    """Whether rolling back once more can do anything: what is lost, or someone else's by now, it cannot."""
    from kdeclare.engine.executor.rollback import WORTH_ANOTHER_TRY

    left = any(not result.is_good for result in run.results.values())
    return left or any(d.code in WORTH_ANOTHER_TRY for d in run.plan.diagnostics)


def _next(run: RunResult, outcome: Outcome, style: Style) -> str:
    lines = []
    statuses = {result.status for result in run.results.values()}
    if outcome.exit_code is ExitCode.DENIED:
        needs = ", and what needs it" if Status.SKIPPED in statuses else ""
        lines.append(f"What was denied was left alone{needs}; {_rest(run)}.")
    elif outcome.exit_code is ExitCode.INTERRUPTED or Status.UNKNOWN in statuses:
        lines.append("The next plan or apply settles what was under way and goes on from there.")
    elif outcome.exit_code is ExitCode.PARTIAL and run.plan.undoes and _can_go_on(run):
        lines.append(f"'kdeclare rollback {clean(run.plan.undoes)}' tries again what is left.")
    elif outcome.exit_code is ExitCode.PARTIAL and not run.plan.undoes:
        lines.append("'kdeclare plan' shows what is left, 'kdeclare apply' does it.")
    if Status.STARTED in statuses:
        lines.append("'kdeclare status --watch' follows the progress.")
    troubled = outcome.exit_code is not ExitCode.OK and not run.plan.undoes
    in_part = any(result.is_in_part for result in run.results.values())
    if run.run_id and troubled and (in_part or Status.DONE in statuses):
        lines.append(f"'kdeclare rollback {clean(run.run_id)}' undoes what was done.")
    return "".join(f"{style.cyan('next:')} {line}\n" for line in lines)


def _rest(run: RunResult) -> str:
    """What became of all that was not denied."""
    statuses = {result.status for result in run.results.values()}
    done = Status.DONE in statuses or (run.run_id is not None and not run.plan.operations)
    if Status.STARTED in statuses:
        return f"everything else {'is done, or ' if done else ''}goes on in the cluster"
    return "everything else is done" if done else "there was nothing else to do"


def _status(run: RunResult, operation: str) -> Status | None:
    result = run.results.get(operation)
    return result.status if result else None


def _ended(run: RunResult) -> list[Ended]:
    """Every operation of the plan; one that nothing was heard of was not begun."""
    names = operation_names(run.plan)
    ended = []
    for operation in run.plan.operations:
        result = run.results.get(operation.id)
        if result is None:
            ended.append(Ended(names[operation.id], Status.INTERRUPTED))
        else:
            cause = names.get(result.cause, result.cause) if result.cause else ""
            ended.append(
                Ended(names[operation.id], result.status, result.error, result.message, clean(cause))
            )
    return ended


def operation_names(plan: Plan) -> dict[str, str]:
    """Operation ids to ``verb resource``, fit for a terminal."""
    return {o.id: clean(f"{o.verb} {o.resource}") for o in plan.operations}
