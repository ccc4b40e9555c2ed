"""The outcome of a plan, run or validation. All output formats and the exit code are based on it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.policies.policy_subjects import find_field_subject
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.report.elements.diagnostics_text import format_severity_counts
from kdeclare.report.elements.values import format_count, join_nonempty, sanitize_for_terminal

if TYPE_CHECKING:
    from kdeclare.report.run.views import ValidationView


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a plan, run or validation.

    status: an identifier for scripts: no-changes, changes, denied or error for a plan; done, denied, partial,
        error or interrupted for a run.
    headline: a sentence for people.
    exit_code: the exit code of the command.
    detail: the number of applied changes, in words, if some changes were denied; otherwise empty.
    """

    status: str
    headline: str
    exit_code: ExitCode
    detail: str = ""

    @property
    def gist(self) -> str:
        """The outcome in a few words, for lists of runs."""
        return self.detail or self.status


def plan_outcome(plan: Plan, detailed_exitcode: bool = False) -> Outcome:
    """Return the outcome of a plan. Errors take precedence over denials, and denials over changes."""
    errors = sum(d.is_error for d in plan.diagnostics)
    headline_start = f"{'Rollback plan' if plan.undoes else 'Plan'} for {format_target(plan)}"
    if plan.has_errors:
        exit_code = ExitCode.STALE if plan.is_stale else ExitCode.ERROR
        return Outcome(
            "error", f"{headline_start} cannot be applied: {format_count(errors, 'error')}.", exit_code
        )
    if plan.undoes:
        headline_start += f", undoing run {sanitize_for_terminal(plan.undoes)}"
    left_alone_count = count_left_alone(plan.diagnostics) if plan.undoes else 0
    counts = join_nonempty(
        [format_planned_counts(plan), f"{left_alone_count:,} not restored" if left_alone_count else ""]
    )
    has_denials = plan.has_denials
    if errors:  # about endpoints that did not respond; apply still makes the planned changes
        counts = join_nonempty([counts, format_count(errors, "error")])
        return Outcome("error", f"{headline_start}: {counts}.", ExitCode.ERROR)
    if plan.has_changes or has_denials:
        headline = f"{headline_start}: {counts or 'denied'}."
        if has_denials:
            return Outcome("denied", headline, ExitCode.DENIED)
        return Outcome("changes", headline, ExitCode.CHANGES if detailed_exitcode else ExitCode.OK)
    return Outcome("no-changes", f"No changes. {_explain_no_changes(plan)}", ExitCode.OK)


def run_outcome(run: ApplyResult) -> Outcome:
    """Return the outcome of a run. Failures take precedence over denials by a policy or a guard."""
    verb, preposition = ("Rolled back", "on") if run.plan.undoes else ("Applied", "to")
    target = f"{preposition} {format_target_compact(run.plan)}"
    total = len(run.plan.operations)
    deferred_count = sum(_is_deferred_cleanup(run, op) for op in run.plan.operations)
    done_count = sum(r.is_good and not r.error for r in run.results.values())
    done_count -= deferred_count
    progress = f"{done_count:,} of {format_count(total, 'operation')} done"
    progress = join_nonempty(
        [progress, f"{deferred_count:,} deferred until the reassignments end" if deferred_count else ""]
    )
    if run.interrupted:
        action = "Rollback interrupted" if run.plan.undoes else "Interrupted"
        headline = f"{action} on {format_target_compact(run.plan)}: {progress}."
        return Outcome("interrupted", headline, ExitCode.INTERRUPTED)
    diagnostics = (*run.plan.diagnostics, *run.diagnostics)
    errors = sum(d.is_error for d in diagnostics)
    left_alone_count = count_left_alone(diagnostics) if run.plan.undoes else 0
    unsuccessful = tuple(_list_unsuccessful(run))
    problem_counts = [] if _has_only_system_denials(run, unsuccessful) else _list_problem_counts(unsuccessful)
    if left_alone_count:
        problem_counts.append(f"{left_alone_count:,} not restored")
    is_partial = bool(problem_counts) or (errors > 0 and done_count > 0)
    if errors:
        problem_counts.append(format_count(errors, "error"))
    if problem_counts:
        headline = f"Nothing was {verb.lower()} {target}: {join_nonempty(problem_counts)}."
        if done_count or any(result.is_partial for result in run.results.values()):
            headline = f"Partially {verb.lower()} {target}: {join_nonempty([progress, *problem_counts])}."
        if is_partial:
            return Outcome("partial", headline, ExitCode.PARTIAL)
        return Outcome("error", headline, ExitCode.ERROR)
    denials = _format_denials(run, unsuccessful)
    if denials:
        if not done_count:
            return Outcome("denied", f"Nothing was {verb.lower()} {target}: {denials}.", ExitCode.DENIED)
        # A change denied during planning has no operation, so "17 of 17" would hide the denial.
        counts = f"{progress if done_count < total else f'{done_count:,} done'}, {denials}"
        headline = f"Partially {verb.lower()} {target}: {counts}."
        return Outcome("denied", headline, ExitCode.DENIED, f"partially {verb.lower()}: {counts}")
    if total == 0 and run.plan.has_changes:
        released = format_count(run.plan.summary.forget, "resource")
        return Outcome("done", f"{verb} {target}: {released} released, kept in the cluster.", ExitCode.OK)
    if total == 0:
        return Outcome("done", f"No changes. {_explain_adoption(run.plan)}", ExitCode.OK)
    return Outcome("done", f"{verb} {target}: {progress}.", ExitCode.OK)


def validation_outcome(view: "ValidationView") -> Outcome:
    """Return the outcome of a validation. Its status is valid, denied (by a policy) or error."""
    files, diagnostic_counts = format_count(view.files, "file"), format_severity_counts(view.diagnostics)
    if any(d.is_blocking for d in view.diagnostics):
        has_errors = any(d.is_error for d in view.diagnostics)
        status, exit_code = ("error", ExitCode.ERROR) if has_errors else ("denied", ExitCode.DENIED)
        return Outcome(status, f"Not valid: {diagnostic_counts} in {files}.", exit_code)
    headline = (
        f"Valid: {format_count(view.resources, 'resource')} in "
        f"{files}{f', {diagnostic_counts}' if diagnostic_counts else ''}."
    )
    return Outcome("valid", headline, ExitCode.OK)


def _is_deferred_cleanup(run: ApplyResult, operation: Operation) -> bool:
    """Whether the operation is a cleanup that waits for a reassignment to finish."""
    result = run.results.get(operation.id)
    is_waiting = result is not None and result.status is Status.STARTED and not result.error
    return is_waiting and get_operation_type(operation).is_cleanup


def count_adopted(plan: Plan) -> int:
    """Return the number of resources that apply would adopt without changing them."""
    changing_ids = {c.id for c in plan.changes if c.action is not Action.NO_OP}
    return sum(o.before is None and o.after is not None and o.id not in changing_ids for o in plan.ownership)


def count_left_alone(diagnostics: Iterable[Diagnostic]) -> int:
    """Return the number of changes that a rollback does not undo, according to the diagnostics."""
    # Imported here because the import takes 0.1 s and is needed only for rollbacks.
    from kdeclare.engine.executor.undo_step import UNRESTORED_CODES

    return sum(d.code in UNRESTORED_CODES for d in diagnostics)


def format_target(plan: Plan) -> str:
    """Format project, environment and cluster, such as ``shop/prod on eu-1``."""
    cluster = _format_cluster(plan)
    return sanitize_for_terminal(
        f"{plan.project}/{plan.env} on {cluster}" if cluster else f"{plan.project}/{plan.env}"
    )


def format_target_compact(plan: Plan) -> str:
    """Format project, environment and cluster, such as ``shop/prod (eu-1)``."""
    cluster = _format_cluster(plan)
    return sanitize_for_terminal(
        f"{plan.project}/{plan.env} ({cluster})" if cluster else f"{plan.project}/{plan.env}"
    )


def format_planned_counts(plan: Plan) -> str:
    """Format the number of changes in a plan, such as ``2 to create, 1 to change, 1 blocked``.

    Return an empty string if the plan has no changes.
    """
    summary, denial_count = plan.summary, len(find_guard_denials(plan))
    replaced_count = sum(c.action is Action.REPLACE and not c.blocked for c in plan.changes)
    create_count, delete_count = summary.create - replaced_count, summary.delete - replaced_count
    move_note = f" ({format_count(summary.reassign, 'partition')} to move)" if summary.reassign else ""
    parts = [
        f"{create_count:,} to create" if create_count else "",
        f"{summary.update:,} to change{move_note}" if summary.update else "",
        f"{replaced_count:,} to replace" if replaced_count else "",
        f"{delete_count:,} to delete" if delete_count else "",
        f"{summary.forget:,} to forget" if summary.forget else "",
        f"{summary.blocked:,} blocked" if summary.blocked else "",
        _format_denied_subjects(plan),
        format_count(denial_count, "denial") if denial_count else "",
    ]
    if summary.reassign and not summary.update:
        parts.insert(1, f"{format_count(summary.reassign, 'partition')} to move")
    return join_nonempty(parts)


def _format_denied_subjects(plan: Plan) -> str:
    """Format the number of topics or other objects with denied changes, such as ``2 topics denied``.

    If all changes of a resource were denied, its topics or objects are not counted.
    """
    names = set().union(*find_denied_subjects(plan).values())
    noun = "resource" if any("/" in name for name in names) else "topic"
    return f"{format_count(len(names), noun)} denied" if names else ""


def _explain_no_changes(plan: Plan) -> str:
    if plan.undoes:
        run_id, left_alone_count = sanitize_for_terminal(plan.undoes), count_left_alone(plan.diagnostics)
        if left_alone_count:
            return (
                f"Run {run_id} cannot be rolled back on {format_target_compact(plan)}: "
                f"{left_alone_count:,} not restored."
            )
        return f"Run {run_id} has nothing left to roll back on {format_target_compact(plan)}."
    return f"{format_target(plan)}: {format_count(plan.summary.unchanged, 'resource')} up to date."


def _format_cluster(plan: Plan) -> str:
    """Return the name of the cluster if it is known and differs from the name of the environment.

    Otherwise, return the id of the cluster, or an empty string if the id is unknown.
    """
    if plan.cluster.name not in ("", plan.env):
        return plan.cluster.name
    return f"cluster {plan.cluster.id}" if plan.cluster.id else ""


def _explain_adoption(plan: Plan) -> str:
    target = format_target_compact(plan)
    count = count_adopted(plan)
    if count:
        return f"{format_count(count, 'resource was', 'resources were')} adopted on {target}."
    if plan.ownership:
        record_count = format_count(len(plan.ownership), "ownership record was", "ownership records were")
        return f"{record_count} updated on {target}."
    return f"Nothing to do on {target}."


_Unsuccessful = Sequence[tuple[Operation, Status]]
"""Operations that did not succeed. Operations without a result did not start."""


def _list_problem_counts(unsuccessful: _Unsuccessful) -> list[str]:
    """Format the number of unsuccessful operations by status."""
    labels = {
        Status.FAILED: "failed",
        Status.DENIED: "denied",
        Status.STALE: "changed by another client",
        Status.SKIPPED: "skipped",
        Status.UNKNOWN: "with unknown outcome",
        Status.STARTED: "still in progress",
        Status.INTERRUPTED: "not started",
    }
    counts = Counter(status for _, status in unsuccessful)
    return [f"{counts[status]:,} {word}" for status, word in labels.items() if counts[status]]


def _list_unsuccessful(run: ApplyResult) -> Iterator[tuple[Operation, Status]]:
    for operation in run.plan.operations:
        result = run.results.get(operation.id)
        status = result.status if result else Status.INTERRUPTED
        if status is not Status.DONE and not (status is Status.STARTED and result and not result.error):
            yield operation, status


def _has_only_system_denials(run: ApplyResult, unsuccessful: _Unsuccessful) -> bool:
    """Whether all unsuccessful operations failed or were skipped because of a broker policy."""
    return all(_is_denied_by_system(run, op.id) for op, _ in unsuccessful)


def _is_denied_by_system(run: ApplyResult, operation_id: str) -> bool:
    """Whether a broker policy denied the operation or a direct or indirect dependency of it."""
    visited_ids = set()
    result = run.results.get(operation_id)
    while result is not None and result.id not in visited_ids:
        if result.status is not Status.SKIPPED:
            return result.status is Status.DENIED
        visited_ids.add(result.id)
        result = run.results.get(result.cause or "")
    return False


def _format_denials(run: ApplyResult, unsuccessful: _Unsuccessful) -> str:
    """Format the number of denied resources, of denied topics, and of skipped operations."""
    counts = Counter(status for _, status in unsuccessful)
    denied_resources = {op.resource for op, status in unsuccessful if status is Status.DENIED}
    denied_subjects, denied_count = _format_denied_subjects(run.plan), len(denied_resources)
    if run.plan.has_denials:
        plan_denied_count = run.plan.summary.blocked + len(set(find_guard_denials(run.plan)))
        denied_count += plan_denied_count if plan_denied_count or denied_subjects else 1
    skipped_count = counts[Status.SKIPPED]
    parts = [
        f"{denied_count:,} denied" if denied_count else "",
        denied_subjects,
        f"{skipped_count:,} skipped" if skipped_count else "",
    ]
    return join_nonempty(parts)


def find_denied_subjects(plan: Plan) -> Mapping[str, Collection[str]]:
    """Return the topics or other objects with denied changes, by the resource that the changes belong to.

    Resources whose changes were all denied are omitted.
    """
    blocked_resources = _find_blocked(plan)
    subjects_by_resource: dict[str, set[str]] = defaultdict(set)
    for verdict in plan.verdicts:
        if verdict.is_denial and verdict.topic is not None and verdict.resource not in blocked_resources:
            subjects_by_resource[verdict.resource].add(verdict.topic)
    return subjects_by_resource


def find_guard_denials(plan: Plan) -> list[str]:
    """Return the resource of each denial by a guard. Resources whose changes were all denied are omitted."""
    denied_resources = [d.resource for d in plan.diagnostics if d.severity is Severity.DENIED]
    if not denied_resources:
        return []
    changing_resources = {str(change.id) for change in plan.changes} - _find_blocked(plan)
    return [resource for resource in denied_resources if resource in changing_resources]


def find_denied_fields(plan: Plan) -> Mapping[str, Collection[str]]:
    """Return the paths of fields whose changes were denied, by resource.

    Resources whose changes were all denied are omitted.
    """
    denied_subjects, guarded_resources = find_denied_subjects(plan), set(find_guard_denials(plan))
    return {
        name: {
            f.path
            for f in change.fields
            if _is_field_denied(change, f, denied_subjects.get(name, ()), name in guarded_resources)
        }
        for change in plan.changes
        if (name := str(change.id)) in denied_subjects or name in guarded_resources
    }


def _is_field_denied(change: Change, field: FieldChange, subjects: Collection[str], is_guarded: bool) -> bool:
    subject = find_field_subject(change.id.kind, field.path)
    return subject is not None and (is_guarded or subject in subjects)


def _find_blocked(plan: Plan) -> set[str]:
    return {str(change.id) for change in plan.changes if change.blocked}
