"""Build the result of an ad hoc command for each resource."""

from collections.abc import Callable, Iterable, Mapping

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.executor.expectations import VerificationResult
from kdeclare.report.adhoc import AdhocResult, ItemOutcome, ItemResult, ItemSummary

Summarize = Callable[[ResourceId, LiveState], ItemSummary | None]

_WORST_FIRST = {
    Status.FAILED: ItemOutcome.FAILED,
    Status.DENIED: ItemOutcome.DENIED,
    Status.UNKNOWN: ItemOutcome.UNKNOWN,
    Status.STALE: ItemOutcome.STALE,
    Status.SKIPPED: ItemOutcome.FAILED,
    Status.INTERRUPTED: ItemOutcome.NOT_BEGUN,
    Status.STARTED: ItemOutcome.ONGOING,
}


def build_result_without_plan(
    failed: Mapping[str, tuple[Diagnostic, ...]], left_out: Mapping[str, str]
) -> AdhocResult:
    """Build the result of a command that made no plan, because every resource failed or was skipped."""
    return AdhocResult(None, (*_build_unplanned_items(failed, left_out),), failed)


def _build_unplanned_items(
    failed: Mapping[str, tuple[Diagnostic, ...]], left_out: Mapping[str, str]
) -> list[ItemResult]:
    items = [
        ItemResult(
            resource, ItemOutcome.FAILED, " ".join(problem.detail or problem.summary for problem in problems)
        )
        for resource, problems in failed.items()
    ]
    return items + [ItemResult(resource, ItemOutcome.LEFT_OUT, why) for resource, why in left_out.items()]


def build_result(
    apply_result: ApplyResult,
    resource_ids: Iterable[ResourceId],
    failed: Mapping[str, tuple[Diagnostic, ...]],
    left_out: Mapping[str, str],
    verified: VerificationResult | None,
    summarize: Summarize,
) -> AdhocResult:
    """Build the result of a command from its plan and its run.

    resource_ids: the planned resources. failed, left_out: the resources that were not planned; see
    `AdhocRequest`.
    """
    items = [
        _build_item(apply_result, id_, verified, summarize) for id_ in resource_ids if str(id_) not in failed
    ]
    ordered = sorted([*items, *_build_unplanned_items(failed, left_out)], key=lambda item: item.resource)
    return AdhocResult(apply_result, tuple(ordered), failed, verified.seconds if verified else None)


def _build_item(
    apply_result: ApplyResult, id_: ResourceId, verified: VerificationResult | None, summarize: Summarize
) -> ItemResult:
    resource = str(id_)
    change = next((c for c in apply_result.plan.changes if str(c.id) == resource), None)
    operations = [op for op in apply_result.plan.operations if str(op.resource) == resource]
    denials = [v.message for v in apply_result.verdicts if v.resource == resource and v.is_denial]
    denials += [
        d.detail
        for d in apply_result.plan.diagnostics
        if d.resource == resource and d.severity is Severity.DENIED
    ]
    summary = summarize(id_, verified.live) if verified else None
    if change is None and not operations and not denials:
        return ItemResult(resource, ItemOutcome.UNCHANGED, seen=summary)
    if (change is not None and change.blocked) or (denials and not operations):
        return ItemResult(resource, ItemOutcome.DENIED, " ".join(denials))
    mismatches = tuple(e for op in operations for e in (verified.unlike.get(op.id, ()) if verified else ()))
    results = [apply_result.results.get(op.id) for op in operations]
    for status, outcome in _WORST_FIRST.items():
        matching_results = [r for r in results if (r.status if r else Status.INTERRUPTED) is status]
        if matching_results:
            message = next((r.message or r.error or "" for r in matching_results if r), "")
            return ItemResult(
                resource, outcome, message, mismatches if outcome is ItemOutcome.ONGOING else (), summary
            )
    if not operations:
        return ItemResult(resource, ItemOutcome.UNCHANGED, seen=summary)
    outcomes_by_action = {Action.CREATE: ItemOutcome.CREATED, Action.DELETE: ItemOutcome.DELETED}
    return ItemResult(
        resource,
        outcomes_by_action.get(change.action, ItemOutcome.ALTERED) if change else ItemOutcome.ALTERED,
        "",
        mismatches,
        summary,
    )
