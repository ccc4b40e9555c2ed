"""The systems' own word before anything is done: validate-only requests, in batches."""

from collections.abc import Mapping, Sequence, Set

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.faults import MADE_CAUSES, Fault, FaultCause
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import batches
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import STALE, Verdict, denied_by_system
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import OPERATION_TYPES, type_of
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.planning.operation_graph import deletes_what_is_used

BATCH = 2000
"""Operations at a time. A system's adapter makes requests of them, and may send the next one before the
answer to the last."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What the cluster would refuse: as diagnostics, and as verdicts where a policy of its own decides."""

    diagnostics: tuple[Diagnostic, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


def preflight(
    connections: Connections, operations: Sequence[Operation], secrets: SecretSource, progress: Progress
) -> Refused:
    """Have the cluster check what can be checked. Raises Fault when it does not answer."""
    by_id = {op.id: op for op in operations}
    checked = [op for op in operations if _can_be_checked(op, by_id)]
    refused: list[tuple[Operation, Fault]] = []
    done = 0
    for verb in sorted({op.verb for op in checked}):
        mine = [op for op in checked if op.verb == verb]
        for batch in batches(OPERATION_TYPES[verb], mine, BATCH):
            results = OPERATION_TYPES[verb].execute(connections, batch, secrets, validate_only=True)
            refused += [(by_id[id_], fault) for id_, fault in results.items() if isinstance(fault, Fault)]
            done += len(batch)
            progress("Checking with the cluster", done, len(checked))
    overtaken = _find_overtaken(connections, refused)
    return Refused(
        tuple(
            _overtaken(op, fault) if op.id in overtaken else _refusal(op, fault)
            for op, fault in refused
            if not _is_denied(op, fault)
        ),
        tuple(
            denied_by_system(str(op.resource), fault.message)
            for op, fault in refused
            if _is_denied(op, fault)
        ),
    )


def _can_be_checked(op: Operation, by_id: Mapping[str, Operation]) -> bool:
    """Not what builds on an earlier step: the cluster would judge it by what it has now."""
    if not type_of(op).validates:
        return False
    before = [by_id[need].verb for need in op.needs]
    changing = (
        verb
        for verb in before
        if OPERATION_TYPES[verb].creates
        or OPERATION_TYPES[verb].deletes
        or OPERATION_TYPES[verb].awaits_others
    )
    used = any(deletes_what_is_used(op, by_id[need]) for need in op.needs)
    return op.verb not in before and not any(changing) and not used


def _find_overtaken(connections: Connections, refused: Sequence[tuple[Operation, Fault]]) -> Set[str]:
    """The operations that are refused because somebody else has changed their resource since it was read.

    What exists although it was read as absent is such a case even if the system does not show it yet.
    """
    causes = {op.id: type_of(op).explain(op, fault).cause for op, fault in refused}
    suspects = [op for op, _ in refused if causes[op.id] in MADE_CAUSES]
    if not suspects:
        return set()
    live = observe(connections, select_all(suspects))
    changed = {op.id for op in suspects if type_of(op).view(op, live) != op.expect}
    return changed | {op.id for op in suspects if causes[op.id] is FaultCause.EXISTS}


def _is_denied(op: Operation, fault: Fault) -> bool:
    return type_of(op).explain(op, fault).cause is FaultCause.DENIED_BY_POLICY


def _overtaken(op: Operation, fault: Fault) -> Diagnostic:
    return error(
        STALE,
        "The plan is stale",
        f"{op.resource} was changed by someone else while the plan was made: "
        f"{fault.message} ({fault.error}).",
        hint="Plan again.",
        resource=str(op.resource),
    )


def _refusal(op: Operation, fault: Fault) -> Diagnostic:
    found = type_of(op).explain(op, fault)
    if found.cause is FaultCause.NOT_AUTHORIZED:
        # whoever plans need not be who applies, so this is no reason to refuse the plan
        return warning(
            "not-authorized",
            "The cluster did not check this change",
            f"{op.resource}: this principal lacks the right {found.right} ({fault.error}).",
            hint="Apply it as a principal that has the right.",
            resource=str(op.resource),
        )
    over_quota = found.cause is FaultCause.OVER_QUOTA
    hint = "Correct the manifest; nothing was changed."
    if over_quota:
        hint = f"Checks count, too: plan with --no-preflight to leave them out. {found.hint}"
    return error(
        "quota-exceeded" if over_quota else "refused-by-cluster",
        "Mutation quota exceeded" if over_quota else "The cluster refuses this change",
        f"{op.resource}: {fault.message or 'no reason given'} ({fault.error}).",
        hint=hint,
        resource=str(op.resource),
    )
