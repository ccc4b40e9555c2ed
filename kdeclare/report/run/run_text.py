"""Render the result of a run as text.

One line shows the number of successful operations. All other operations are listed, followed by next steps
for the user.
"""

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
from kdeclare.report.run.effects import render_effects_text

_FOLD_LIMIT = 20


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    """An operation and its result, as text that is safe to print.

    cause: for a skipped operation, the operation whose failure is the reason; otherwise empty.
    """

    name: str
    status: Status
    error: str | None = None
    message: str = ""
    cause: str = ""


def render_run_text(run: ApplyResult, style: Style = PLAIN, seconds: float | None = None) -> str:
    """Render the result of a run as text that ends in a newline.

    seconds: the duration of the run; None if unknown.
    """
    outcome = run_outcome(run)
    outcomes = _list_outcomes(run)
    blocks = [
        _render_headline(run, outcome, style, seconds),
        _render_verdicts(run, style),
        render_outcomes(outcomes, style),
    ]
    blocks.append(render_effects_text(run.effects, style))
    blocks.append(render_diagnostics(run.diagnostics, style))
    blocks.append(_render_next_steps(run, outcome, style))
    return "\n".join(block for block in blocks if block)


def format_done_counts(verbs: Iterable[str]) -> str:
    """Format the number of operations by verb, such as ``2 topics created, 5 resources configured``."""
    counts = Counter(verbs)
    parts = []
    for verb in OPERATION_TYPES:  # in display order
        operation_type = OPERATION_TYPES[verb] if verb in counts else None
        if operation_type is not None and operation_type.done_label is not None:
            count = counts.pop(verb)
            parts.append(
                format_count(count, *operation_type.done_label) if any(operation_type.done_label) else ""
            )
    return join_nonempty(
        [*parts, *(f"{count:,} × {sanitize_for_terminal(verb)}" for verb, count in sorted(counts.items()))]
    )


def render_outcomes(outcomes: Sequence[OperationOutcome], style: Style = PLAIN) -> str:
    """Render unsuccessful operations and operations in progress, with one paragraph per status."""
    sections: tuple[tuple[Status, str, str], ...] = (
        (Status.FAILED, style.red("Failed:"), style.red("✗")),
        (Status.DENIED, style.red("Denied by a broker policy:"), style.red("✗")),
        (
            Status.STALE,
            style.yellow("Not applied, because another client has made changes since planning:"),
            "!",
        ),
        (Status.SKIPPED, style.yellow("Skipped because a dependency did not succeed:"), "-"),
        (Status.UNKNOWN, style.yellow("Started, outcome unknown:"), "?"),
        (Status.INTERRUPTED, style.yellow("Not started:"), "-"),
        (Status.STARTED, style.cyan("Still in progress in the cluster:"), style.cyan("↻")),
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
    """Render the verdicts on the plan. Denials by broker policies are shown with the operations."""
    notable_verdicts = select_notable_verdicts(run.plan.verdicts)
    return render_policies(run.plan.verdicts, notable_verdicts, style) if notable_verdicts else ""


def _can_retry_rollback(run: ApplyResult) -> bool:
    """Whether repeating the rollback can restore more values.

    A rollback never restores lost data, or values that another client has changed.
    """
    from kdeclare.engine.executor.undo_step import RETRIABLE_CODES

    has_unsuccessful = any(not result.is_good for result in run.results.values())
    return has_unsuccessful or any(d.code in RETRIABLE_CODES for d in run.plan.diagnostics)


def _render_next_steps(run: ApplyResult, outcome: Outcome, style: Style) -> str:
    lines = []
    statuses = {result.status for result in run.results.values()}
    if outcome.exit_code is ExitCode.DENIED:
        dependents_note = " and everything that depends on them" if Status.SKIPPED in statuses else ""
        lines.append(f"Denied changes{dependents_note} were not made. {_explain_remaining(run)}")
    elif outcome.exit_code is ExitCode.INTERRUPTED or Status.UNKNOWN in statuses:
        lines.append(
            "Run 'kdeclare plan' or 'kdeclare apply' to recover the operations that were in progress."
        )
    elif outcome.exit_code is ExitCode.PARTIAL and run.plan.undoes and _can_retry_rollback(run):
        lines.append(
            f"Run 'kdeclare rollback {sanitize_for_terminal(run.plan.undoes)}' "
            "to roll back the remaining changes."
        )
    elif outcome.exit_code is ExitCode.PARTIAL and not run.plan.undoes:
        lines.append("Run 'kdeclare plan' to see the remaining changes, and 'kdeclare apply' to make them.")
    if Status.STARTED in statuses:
        lines.append("Run 'kdeclare status --watch' to follow the progress.")
    has_problems = outcome.exit_code is not ExitCode.OK and not run.plan.undoes
    has_partial = any(result.is_partial for result in run.results.values())
    if run.run_id and has_problems and (has_partial or Status.DONE in statuses):
        lines.append(
            f"Run 'kdeclare rollback {sanitize_for_terminal(run.run_id)}' to undo the changes of this run."
        )
    return "".join(f"{style.cyan('next:')} {line}\n" for line in lines)


def _explain_remaining(run: ApplyResult) -> str:
    """Return a sentence that says whether the changes that were not denied are done or in progress.

    If there are no such changes, the sentence says so.
    """
    statuses = {result.status for result in run.results.values()}
    has_done = Status.DONE in statuses or (run.run_id is not None and not run.plan.operations)
    if Status.STARTED in statuses:
        done_note = "done, or " if has_done else ""
        return f"Everything else is {done_note}still in progress in the cluster."
    return "Everything else is done." if has_done else "There was nothing else to do."


def _find_status(run: ApplyResult, operation_id: str) -> Status | None:
    result = run.results.get(operation_id)
    return result.status if result else None


def _list_outcomes(run: ApplyResult) -> list[OperationOutcome]:
    """Return the outcome of every operation of the plan.

    An operation without a result is included as an operation that was not started.
    """
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
    """Return the verb and the resource of each operation as printable text, by operation id."""
    return {o.id: sanitize_for_terminal(f"{o.verb} {o.resource}") for o in plan.operations}
