"""What a run did, for people: what went well in one line, what did not one by one, and how to go on."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.provider.registry import OPERATION_TYPES
from kdeclare.report.elements.diagnostics_text import (
    render_diagnostics,
    render_policies,
    select_notable_verdicts,
)
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    join_nonempty,
    sanitize_for_terminal,
)
from kdeclare.report.outcome import Outcome, run_outcome

_FOLD_LIMIT = 20


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    """One operation and how it ended, for people.

    cause: the operation whose failure kept this one from being begun.
    """

    name: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str = ""


def render_run_text(run: ApplyResult, style: Style = PLAIN, seconds: float | None = None) -> str:
    """The whole text, ending in a new line. ``seconds``: how long the run took, if known."""
    outcome = run_outcome(run)
    outcomes = _list_outcomes(run)
    blocks = [
        _render_headline(run, outcome, style, seconds),
        _render_verdicts(run, style),
        render_outcomes(outcomes, style),
    ]
    blocks.append(render_diagnostics(run.diagnostics, style))
    blocks.append(_render_next_steps(run, outcome, style))
    return "\n".join(block for block in blocks if block)


def format_done_counts(verbs: Iterable[str]) -> str:
    """``2 topics created, 5 resources configured``."""
    counts = Counter(verbs)
    parts = []
    for verb, operation_type in OPERATION_TYPES.items():
        if verb in counts and operation_type.done_label is not None:
            count = counts.pop(verb)
            parts.append(
                format_count(count, *operation_type.done_label) if any(operation_type.done_label) else ""
            )
    return join_nonempty(
        [*parts, *(f"{count:,} × {sanitize_for_terminal(verb)}" for verb, count in sorted(counts.items()))]
    )


def render_outcomes(outcomes: Sequence[OperationOutcome], style: Style = PLAIN) -> str:
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
        items = [item for item in outcomes if item.status is status]
        if items:
            blocks.append(
                "".join(f"{line}\n" for line in [title, *_render_outcome_group(items, mark, style)])
            )
    return "\n".join(blocks)


def _render_outcome_group(items: Sequence[OperationOutcome], mark: str, style: Style) -> list[str]:
    lines = []
    totals = Counter(item.error or item.cause for item in items)
    shown_counts: Counter[str] = Counter()
    for item in items:
        reason = item.error or item.cause
        if totals[reason] > _FOLD_LIMIT and shown_counts[reason] >= _FOLD_LIMIT // 2:
            continue
        shown_counts[reason] += 1
        lines.append(f"  {mark} {item.name}" + (f"  {style.dim('← ' + item.cause)}" if item.cause else ""))
        error = item.error if item.status is Status.FAILED or not item.message else None
        message = ": ".join(sanitize_for_terminal(part) for part in (error, item.message) if part)
        if message:
            lines.append(f"      {message}")
        if totals[reason] > _FOLD_LIMIT and shown_counts[reason] == _FOLD_LIMIT // 2:
            hidden_count = totals[reason] - shown_counts[reason]
            lines.append(style.dim(f"  … and {hidden_count:,} more{f' ({reason})' if reason else ''}"))
    return lines


def _render_headline(run: ApplyResult, outcome: Outcome, style: Style, seconds: float | None) -> str:
    paint = {ExitCode.OK: style.green, ExitCode.DENIED: style.yellow}.get(outcome.exit_code, style.red)
    lines = [paint(outcome.headline)]
    verbs = (o.verb for o in run.plan.operations if _find_status(run, o.id) is Status.DONE)
    done_counts = format_done_counts(verbs)
    if done_counts:
        lines.append(
            f"In {format_duration(seconds)}: {done_counts}." if seconds is not None else f"{done_counts}."
        )
    if run.run_id:
        lines.append(style.dim(f"Run {sanitize_for_terminal(run.run_id)}"))
    return "".join(f"{line}\n" for line in lines)


def _render_verdicts(run: ApplyResult, style: Style) -> str:
    """What policies said of the plan; what the brokers' refused during the run is said beside it."""
    notable_verdicts = select_notable_verdicts(run.plan.verdicts)
    return render_policies(run.plan.verdicts, notable_verdicts, style) if notable_verdicts else ""


def _can_retry_rollback(run: ApplyResult) -> bool:
    """Whether rolling back once more can do anything: what is lost, or someone else's by now, it cannot."""
    from kdeclare.engine.executor.rollback import RETRIABLE_CODES

    has_unsuccessful = any(not result.is_good for result in run.results.values())
    return has_unsuccessful or any(d.code in RETRIABLE_CODES for d in run.plan.diagnostics)


def _render_next_steps(run: ApplyResult, outcome: Outcome, style: Style) -> str:
    lines = []
    statuses = {result.status for result in run.results.values()}
    if outcome.exit_code is ExitCode.DENIED:
        dependents_note = ", and what needs it" if Status.SKIPPED in statuses else ""
        lines.append(f"What was denied was left alone{dependents_note}; {_explain_remaining(run)}.")
    elif outcome.exit_code is ExitCode.INTERRUPTED or Status.UNKNOWN in statuses:
        lines.append("The next plan or apply settles what was under way and goes on from there.")
    elif outcome.exit_code is ExitCode.PARTIAL and run.plan.undoes and _can_retry_rollback(run):
        lines.append(
            f"'kdeclare rollback {sanitize_for_terminal(run.plan.undoes)}' tries again what is left."
        )
    elif outcome.exit_code is ExitCode.PARTIAL and not run.plan.undoes:
        lines.append("'kdeclare plan' shows what is left, 'kdeclare apply' does it.")
    if Status.STARTED in statuses:
        lines.append("'kdeclare status --watch' follows the progress.")
    has_problems = outcome.exit_code is not ExitCode.OK and not run.plan.undoes
    has_partial = any(result.is_partial for result in run.results.values())
    if run.run_id and has_problems and (has_partial or Status.DONE in statuses):
        lines.append(f"'kdeclare rollback {sanitize_for_terminal(run.run_id)}' undoes what was done.")
    return "".join(f"{style.cyan('next:')} {line}\n" for line in lines)


def _explain_remaining(run: ApplyResult) -> str:
    """What became of all that was not denied."""
    statuses = {result.status for result in run.results.values()}
    has_done = Status.DONE in statuses or (run.run_id is not None and not run.plan.operations)
    if Status.STARTED in statuses:
        return f"everything else {'is done, or ' if has_done else ''}goes on in the cluster"
    return "everything else is done" if has_done else "there was nothing else to do"


def _find_status(run: ApplyResult, operation_id: str) -> Status | None:
    result = run.results.get(operation_id)
    return result.status if result else None


def _list_outcomes(run: ApplyResult) -> list[OperationOutcome]:
    """Every operation of the plan; one that nothing was heard of was not begun."""
    names = format_operation_names(run.plan)
    outcomes = []
    for operation in run.plan.operations:
        result = run.results.get(operation.id)
        if result is None:
            outcomes.append(OperationOutcome(names[operation.id], Status.INTERRUPTED))
        else:
            cause = names.get(result.cause, result.cause) if result.cause else ""
            outcomes.append(
                OperationOutcome(
                    names[operation.id],
                    result.status,
                    result.error,
                    result.message,
                    sanitize_for_terminal(cause),
                )
            )
    return outcomes


def format_operation_names(plan: Plan) -> dict[str, str]:
    """Operation ids to ``verb resource``, fit for a terminal."""
    return {o.id: sanitize_for_terminal(f"{o.verb} {o.resource}") for o in plan.operations}
