"""One answer per plan and run: text, JSON and exit status are all derived from it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import RunResult, Status
from kdeclare.core.provider.registry import type_of
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.policy_subjects import find_field_subject
from kdeclare.report.elements.diagnostics_text import tally
from kdeclare.report.elements.values import clean, listed, plural

if TYPE_CHECKING:
    from kdeclare.report.run.views import ValidationView


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: ``status`` for scripts, ``headline`` for people, ``exit_code`` for the shell.

    status: no-changes, changes, denied or error for a plan; of a run done, denied, partial, error
    or interrupted. detail: of a run of which a part was denied, how much was done; otherwise empty.
    """

    status: str
    headline: str
    exit_code: ExitCode
    detail: str = ""

    @property
    def gist(self) -> str:
        """A few words, after the name of a run."""
        return self.detail or self.status


def plan_outcome(plan: Plan, detailed_exitcode: bool = False) -> Outcome:
    """What a plan comes to: an error weighs more than a denial, a denial more than changes."""
    errors = sum(d.is_error for d in plan.diagnostics)
    head = f"{'Rollback plan' if plan.undoes else 'Plan'} for {where(plan)}"
    if errors:
        code = ExitCode.STALE if plan.is_stale else ExitCode.ERROR
        return Outcome("error", f"{head} cannot be applied: {plural(errors, 'error')}.", code)
    if plan.undoes:
        head += f", undoing run {clean(plan.undoes)}"
    left = left_alone(plan.diagnostics) if plan.undoes else 0
    counts = listed([to_do(plan), f"{left:,} left alone" if left else ""])
    denied = is_denied(plan)
    if plan.has_changes or denied:
        headline = f"{head}: {counts or 'denied'}."
        if denied:
            return Outcome("denied", headline, ExitCode.DENIED)
        return Outcome("changes", headline, ExitCode.CHANGES if detailed_exitcode else ExitCode.OK)
    return Outcome("no-changes", f"No changes. {_in_order(plan)}", ExitCode.OK)


def run_outcome(run: RunResult) -> Outcome:
    """What a run comes to. What failed weighs more than what a policy or a guard denied."""
    verb, to = ("Rolled back", "on") if run.plan.undoes else ("Applied", "to")
    place = f"{to} {place_of(run.plan)}"
    total = len(run.plan.operations)
    later = sum(_is_later(run, op) for op in run.plan.operations)
    good = sum(r.is_good and not r.error for r in run.results.values())
    good -= later
    of_total = f"{good:,} of {plural(total, 'operation')} done"
    of_total = listed([of_total, f"{later:,} left for when the moves are over" if later else ""])
    if run.interrupted:
        headline = f"Interrupted: {of_total}, {verb.lower()} {place}."
        return Outcome("interrupted", headline, ExitCode.INTERRUPTED)
    diagnostics = (*run.plan.diagnostics, *run.diagnostics)
    errors = sum(d.is_error for d in diagnostics)
    left = left_alone(diagnostics) if run.plan.undoes else 0
    troubles = [] if _only_refused(run) else _losses(run)
    if left:
        troubles.append(f"{left:,} left alone")
    partial = bool(troubles) or (errors > 0 and good > 0)
    if errors:
        troubles.append(plural(errors, "error"))
    if troubles:
        headline = f"Nothing was {verb.lower()} {place}: {listed(troubles)}."
        if good or any(result.is_in_part for result in run.results.values()):
            headline = f"{verb} in part {place}: {listed([of_total, *troubles])}."
        if partial:
            return Outcome("partial", headline, ExitCode.PARTIAL)
        return Outcome("error", headline, ExitCode.ERROR)
    denials = _denials(run)
    if denials:
        if not good:
            return Outcome("denied", f"Nothing was {verb.lower()} {place}: {denials}.", ExitCode.DENIED)
        # what was denied while planning is no operation of the plan, so "17 of 17" would say that all is done
        counts = f"{of_total if good < total else f'{good:,} done'}, {denials}"
        headline = f"{verb} in part {place}: {counts}."
        return Outcome("denied", headline, ExitCode.DENIED, f"{verb.lower()} in part: {counts}")
    if total == 0 and run.plan.has_changes:
        released = plural(run.plan.summary.forget, "resource")
        return Outcome("done", f"{verb} {place}: {released} released, kept in the cluster.", ExitCode.OK)
    if total == 0:
        return Outcome("done", f"No changes. {_taken(run.plan)}", ExitCode.OK)
    return Outcome("done", f"{verb} {place}: {of_total}.", ExitCode.OK)


def validation_outcome(view: "ValidationView") -> Outcome:
    """What a validation comes to: valid, denied (by a policy that needs no live state) or error."""
    files, count = plural(view.files, "file"), tally(view.diagnostics)
    if any(d.blocks for d in view.diagnostics):
        bad = any(d.is_error for d in view.diagnostics)
        status, code = ("error", ExitCode.ERROR) if bad else ("denied", ExitCode.DENIED)
        return Outcome(status, f"Not valid: {count} in {files}.", code)
    headline = f"Valid: {plural(view.resources, 'resource')} in {files}{f', {count}' if count else ''}."
    return Outcome("valid", headline, ExitCode.OK)


def _is_later(run: RunResult, operation: Operation) -> bool:
    """Whether it tidies up, and could not yet because moves go on."""
    result = run.results.get(operation.id)
    waits = result is not None and result.status is Status.STARTED and not result.error
    return waits and type_of(operation).is_cleanup


def is_denied(plan: Plan) -> bool:
    """Whether a policy or a guard denied something."""
    return any(v.denies for v in plan.verdicts) or any(
        d.severity is Severity.DENIED for d in plan.diagnostics
    )


def adopting(plan: Plan) -> int:
    """How many resources apply would take into ownership without changing them."""
    acting = {c.id for c in plan.changes if c.action is not Action.NO_OP}
    return sum(o.before is None and o.after is not None and o.id not in acting for o in plan.ownership)


def left_alone(diagnostics: Iterable[Diagnostic]) -> int:
    """How many diagnostics name something that a rollback does not bring back."""
    from kdeclare.engine.executor.rollback import LEFT_ALONE  # a tenth of a second that a plan needs not wait

    return sum(d.code in LEFT_ALONE for d in diagnostics)


def where(plan: Plan) -> str:
    """Project, environment and cluster in a few words, after "for"."""
    cluster = _cluster(plan)
    return clean(f"{plan.project}/{plan.env} on {cluster}" if cluster else f"{plan.project}/{plan.env}")


def place_of(plan: Plan) -> str:
    """The same, after "on" or "to"."""
    cluster = _cluster(plan)
    return clean(f"{plan.project}/{plan.env} ({cluster})" if cluster else f"{plan.project}/{plan.env}")


def to_do(plan: Plan) -> str:
    """``2 to create, 1 to change, 1 blocked, 1 topic denied``; empty when there is nothing."""
    s, denials = plan.summary, len(guarded(plan))
    moves = f" ({plural(s.reassign, 'partition')} to move)" if s.reassign else ""
    parts = [
        f"{s.create:,} to create" if s.create else "",
        f"{s.update:,} to change{moves}" if s.update else "",
        f"{s.delete:,} to delete" if s.delete else "",
        f"{s.forget:,} to forget" if s.forget else "",
        f"{s.blocked:,} blocked" if s.blocked else "",
        _subjects_denied(plan),
        plural(denials, "denial") if denials else "",
    ]
    if s.reassign and not s.update:
        parts.insert(1, f"{plural(s.reassign, 'partition')} to move")
    return listed(parts)


def _subjects_denied(plan: Plan) -> str:
    """Of resources of which the rest is done."""
    names = set().union(*subjects_denied(plan).values())
    noun = "resource" if any("/" in name for name in names) else "topic"
    return f"{plural(len(names), noun)} denied" if names else ""


def _in_order(plan: Plan) -> str:
    if plan.undoes:
        run, left = clean(plan.undoes), left_alone(plan.diagnostics)
        if left:
            return f"Nothing of run {run} can be undone on {place_of(plan)}: {left:,} left alone."
        return f"Nothing of run {run} is left to undo on {place_of(plan)}."
    return f"{where(plan)}: {plural(plan.summary.unchanged, 'resource')} in order."


def _cluster(plan: Plan) -> str:
    """The name alone where it says more than the environment does; empty where nothing identifies it."""
    if plan.cluster.name not in ("", plan.env):
        return plan.cluster.name
    return f"cluster {plan.cluster.id}" if plan.cluster.id else ""


def _taken(plan: Plan) -> str:
    place = place_of(plan)
    count = adopting(plan)
    if count:
        return f"{plural(count, 'resource was', 'resources were')} taken into ownership on {place}."
    if plan.ownership:
        records = plural(len(plan.ownership), "record of ownership was", "records of ownership were")
        return f"{records} brought up to date on {place}."
    return f"Nothing to do on {place}."


def _losses(run: RunResult) -> list[str]:
    """What did not end well, counted; an operation that nothing was heard of was not begun."""
    words = {
        Status.FAILED: "failed",
        Status.DENIED: "denied",
        Status.STALE: "changed by someone else",
        Status.SKIPPED: "skipped",
        Status.UNKNOWN: "with unknown outcome",
        Status.STARTED: "still in progress",
        Status.INTERRUPTED: "not begun",
    }
    counts = Counter(status for _, status in _ended_badly(run))
    return [f"{counts[status]:,} {word}" for status, word in words.items() if counts[status]]


def _ended_badly(run: RunResult) -> Iterator[tuple[Operation, Status]]:
    for operation in run.plan.operations:
        result = run.results.get(operation.id)
        status = result.status if result else Status.INTERRUPTED
        if status is not Status.DONE and not (status is Status.STARTED and result and not result.error):
            yield operation, status


def _only_refused(run: RunResult) -> bool:
    """Whether nothing went wrong but what policies of the brokers refused, and what needed that."""
    return all(_is_refused(run, op.id) for op, _ in _ended_badly(run))


def _is_refused(run: RunResult, operation: str) -> bool:
    """Whether a policy of the brokers refused it, or something that it needs, however far."""
    seen = set()
    result = run.results.get(operation)
    while result is not None and result.id not in seen:
        if result.status is not Status.SKIPPED:
            return result.status is Status.DENIED
        seen.add(result.id)
        result = run.results.get(result.cause or "")
    return False


def _denials(run: RunResult) -> str:
    """Resources that were denied, before the run or during it, topics, and operations skipped for it."""
    counts = Counter(status for _, status in _ended_badly(run))
    resources = {op.resource for op, status in _ended_badly(run) if status is Status.DENIED}
    topics, denied = _subjects_denied(run.plan), len(resources)
    if is_denied(run.plan):
        before = run.plan.summary.blocked + len(set(guarded(run.plan)))
        denied += before if before or topics else 1
    skipped = counts[Status.SKIPPED]
    parts = [f"{denied:,} denied" if denied else "", topics, f"{skipped:,} skipped" if skipped else ""]
    return listed(parts)


def subjects_denied(plan: Plan) -> Mapping[str, Collection[str]]:
    """What policies deny within resources, as verdicts name it; without what is blocked as a whole."""
    blocked = _blocked(plan)
    found: dict[str, set[str]] = defaultdict(set)
    for verdict in plan.verdicts:
        if verdict.denies and verdict.topic is not None and verdict.resource not in blocked:
            found[verdict.resource].add(verdict.topic)
    return found


def guarded(plan: Plan) -> list[str]:
    """The resources of changes that a guard denies and something is left of, one for each denial."""
    acting = {str(change.id) for change in plan.changes} - _blocked(plan)
    denials = (d.resource for d in plan.diagnostics if d.severity is Severity.DENIED)
    return [resource for resource in denials if resource in acting]


def fields_denied(plan: Plan) -> Mapping[str, Collection[str]]:
    """The paths of the fields that will stay as they are, by resource; without what is blocked as a whole."""
    subjects, whole = subjects_denied(plan), set(guarded(plan))
    return {
        name: {f.path for f in change.fields if _is_denied(change, f, subjects.get(name, ()), name in whole)}
        for change in plan.changes
        if (name := str(change.id)) in subjects or name in whole
    }


def _is_denied(change: Change, field: FieldChange, subjects: Collection[str], whole: bool) -> bool:
    subject = find_field_subject(change.id.kind, field.path)
    return subject is not None and (whole or subject in subjects)


def _blocked(plan: Plan) -> set[str]:
    return {str(change.id) for change in plan.changes if change.blocked}
