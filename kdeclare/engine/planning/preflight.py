"""Send validate-only requests in batches, so that the systems check a plan before it is applied."""

from collections.abc import Mapping, Sequence, Set

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import DONE_CAUSES, Fault, FaultCause
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import batch_operations
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import STALE, Verdict, build_system_denial
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import OPERATION_TYPES, get_operation_type
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.planning.operation_graph import is_deletion_of_used_object

BATCH_SIZE = 2000
"""The maximum number of operations per batch.

A provider splits a batch into requests, and can send a request before the previous one is answered.
"""


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """The changes that the cluster would refuse.

    diagnostics: the reasons for refusals. verdicts: denials by the cluster's own policy.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


def run_preflight(
    connections: Connections, operations: Sequence[Operation], secrets: SecretSource, progress: Progress
) -> PreflightResult:
    """Have the cluster validate every operation that can be checked.

    Raises Fault if the cluster does not respond.
    """
    by_id = {op.id: op for op in operations}
    checked = [op for op in operations if _can_check(op, by_id)]
    refused_operations: list[tuple[Operation, Fault]] = []
    checked_count = 0
    for verb in sorted({op.verb for op in checked}):
        operations_of_verb = [op for op in checked if op.verb == verb]
        for batch in batch_operations(OPERATION_TYPES[verb], operations_of_verb, BATCH_SIZE):
            results = OPERATION_TYPES[verb].execute(connections, batch, secrets, validate_only=True)
            refused_operations += [
                (by_id[id_], fault) for id_, fault in results.items() if isinstance(fault, Fault)
            ]
            checked_count += len(batch)
            progress("Checking with the cluster", checked_count, len(checked))
    overtaken_ids = _find_overtaken(connections, refused_operations)
    return PreflightResult(
        tuple(
            _report_overtaken(op, fault) if op.id in overtaken_ids else _report_refusal(op, fault)
            for op, fault in refused_operations
            if not _is_denied(op, fault)
        ),
        tuple(
            build_system_denial(str(op.resource), fault.message)
            for op, fault in refused_operations
            if _is_denied(op, fault)
        ),
    )


def _can_check(op: Operation, by_id: Mapping[str, Operation]) -> bool:
    """Whether the cluster can validate the operation.

    The cluster validates operations against its current state. An operation that depends on an earlier
    operation therefore cannot be checked.
    """
    if not get_operation_type(op).validates:
        return False
    predecessor_verbs = [by_id[need].verb for need in op.needs]
    changing_verbs = (
        verb
        for verb in predecessor_verbs
        if OPERATION_TYPES[verb].creates
        or OPERATION_TYPES[verb].deletes
        or OPERATION_TYPES[verb].awaits_others
    )
    is_used = any(is_deletion_of_used_object(op, by_id[need]) for need in op.needs)
    return op.verb not in predecessor_verbs and not any(changing_verbs) and not is_used


def _find_overtaken(
    connections: Connections, refused_operations: Sequence[tuple[Operation, Fault]]
) -> Set[str]:
    """Return the refused operations on resources that another client changed after kdeclare had read them.

    These include operations on objects that another client has created, even if the system does not show the
    objects yet.
    """
    causes = {op.id: get_operation_type(op).explain(op, fault).cause for op, fault in refused_operations}
    suspects = [op for op, _ in refused_operations if causes[op.id] in DONE_CAUSES]
    if not suspects:
        return set()
    live = observe(connections, select_all(suspects))
    changed_ids = {op.id for op in suspects if get_operation_type(op).compute_view(op, live) != op.expect}
    return changed_ids | {op.id for op in suspects if causes[op.id] is FaultCause.EXISTS}


def _is_denied(op: Operation, fault: Fault) -> bool:
    return get_operation_type(op).explain(op, fault).cause is FaultCause.DENIED_BY_POLICY


def _report_overtaken(op: Operation, fault: Fault) -> Diagnostic:
    return error(
        STALE,
        "The plan is stale",
        f"Another client changed {op.resource} while the plan was being created: "
        f"{fault.message} ({fault.error}).",
        hint="Run kdeclare plan again.",
        resource=str(op.resource),
    )


def _report_refusal(op: Operation, fault: Fault) -> Diagnostic:
    explanation = get_operation_type(op).explain(op, fault)
    if explanation.cause is FaultCause.NOT_AUTHORIZED:
        # This is not a reason to refuse the plan, because a different principal might apply it.
        return warning(
            "not-authorized",
            "The cluster did not check this change",
            f"{op.resource}: the principal that made this plan needs {explanation.right} ({fault.error}).",
            hint="Apply the plan as a principal that has this permission.",
            resource=str(op.resource),
        )
    is_over_quota = explanation.cause is FaultCause.OVER_QUOTA
    hint = "Correct the manifest. Nothing was changed."
    if is_over_quota:
        hint = (
            "Pass --no-preflight to plan without these checks, which count toward the quota. "
            f"{explanation.hint}"
        )
    return error(
        "quota-exceeded" if is_over_quota else "refused-by-cluster",
        "Mutation quota exceeded" if is_over_quota else "The cluster refuses this change",
        f"{op.resource}: {fault.message or 'no reason given'} ({fault.error}).",
        hint=hint,
        resource=str(op.resource),
    )
