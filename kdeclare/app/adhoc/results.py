"""What came of an ad hoc command, resource by resource."""

from collections.abc import Callable, Iterable, Mapping

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.run import RunResult, Status
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.executor.expectations import Verified
from kdeclare.report.adhoc import AdhocResult, ItemResult, Outcome, Summary

Summarize = Callable[[ResourceId, LiveState], Summary | None]

_WORST_FIRST = {
    Status.FAILED: Outcome.FAILED,
    Status.DENIED: Outcome.DENIED,
    Status.UNKNOWN: Outcome.UNKNOWN,
    Status.STALE: Outcome.STALE,
    Status.SKIPPED: Outcome.FAILED,
    Status.INTERRUPTED: Outcome.NOT_BEGUN,
    Status.STARTED: Outcome.ONGOING,
}


def result_without_plan(
    failed: Mapping[str, tuple[Diagnostic, ...]], left_out: Mapping[str, str]
) -> AdhocResult:
    """Where everything failed, or was left out, before there was a plan."""
    return AdhocResult(None, (*_never_planned(failed, left_out),), failed)


def _never_planned(
    failed: Mapping[str, tuple[Diagnostic, ...]], left_out: Mapping[str, str]
) -> list[ItemResult]:
    items = [
        ItemResult(
            resource, Outcome.FAILED, " ".join(problem.detail or problem.summary for problem in problems)
        )
        for resource, problems in failed.items()
    ]
    return items + [ItemResult(resource, Outcome.LEFT_OUT, why) for resource, why in left_out.items()]


def result_of(
    run: RunResult,
    asked: Iterable[ResourceId],
    failed: Mapping[str, tuple[Diagnostic, ...]],
    left_out: Mapping[str, str],
    verified: Verified | None,
    summarize: Summarize,
) -> AdhocResult:
    """What came of each resource.

    asked: what was planned. failed, left_out: what never was; see `AdhocRequest`.
    """
    items = [_item(run, id_, verified, summarize) for id_ in asked if str(id_) not in failed]
    ordered = sorted([*items, *_never_planned(failed, left_out)], key=lambda item: item.resource)
    return AdhocResult(run, tuple(ordered), failed, verified.seconds if verified else None)


def _item(run: RunResult, id_: ResourceId, verified: Verified | None, summarize: Summarize) -> ItemResult:
    resource = str(id_)
    change = next((c for c in run.plan.changes if str(c.id) == resource), None)
    operations = [op for op in run.plan.operations if str(op.resource) == resource]
    denials = [v.message for v in run.verdicts if v.resource == resource and v.denies]
    denials += [
        d.detail for d in run.plan.diagnostics if d.resource == resource and d.severity is Severity.DENIED
    ]
    seen = summarize(id_, verified.live) if verified else None
    if change is None and not operations and not denials:
        return ItemResult(resource, Outcome.UNCHANGED, seen=seen)
    if (change is not None and change.blocked) or (denials and not operations):
        return ItemResult(resource, Outcome.DENIED, " ".join(denials))
    unlike = tuple(e for op in operations for e in (verified.unlike.get(op.id, ()) if verified else ()))
    results = [run.results.get(op.id) for op in operations]
    for status, outcome in _WORST_FIRST.items():
        of_these = [r for r in results if (r.status if r else Status.INTERRUPTED) is status]
        if of_these:
            why = next((r.message or r.error or "" for r in of_these if r), "")
            return ItemResult(resource, outcome, why, unlike if outcome is Outcome.ONGOING else (), seen)
    if not operations:
        return ItemResult(resource, Outcome.UNCHANGED, seen=seen)
    deed = {Action.CREATE: Outcome.CREATED, Action.DELETE: Outcome.DELETED}
    return ItemResult(
        resource, deed.get(change.action, Outcome.ALTERED) if change else Outcome.ALTERED, "", unlike, seen
    )
