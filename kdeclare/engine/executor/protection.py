"""Check again at apply what must never be deleted: by the state and the live systems, not by the plan."""

from collections.abc import Iterator, Mapping, Set

from kdeclare.core.capabilities import PREVENT_DESTROY, find_undeletable
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, denied, error
from kdeclare.core.exits import ExitCode
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Plan
from kdeclare.core.registry import type_of
from kdeclare.core.state import State
from kdeclare.engine.planning.planfile import read_plan
from kdeclare.engine.state.port import StateStore


def refuse_protected(plan: Plan, state: State | None, connections: Connections, store: StateStore) -> None:
    """Refuse a plan that deletes what is protected. Raises KdeclareError (exit 3), and Fault.

    A rollback may delete a protected resource that its run created. A rollback of a run that does not exist
    is refused (exit code 4).
    """
    created = _find_created_by(plan.undoes, store) if plan.undoes is not None else frozenset()
    deletions = (op for op in plan.operations if type_of(op).deletes)
    deleted = {found for op in deletions if (found := type_of(op).find_object(op)) is not None}
    if not deleted:
        return
    problems = list(_find_protected(deleted, created, state.resources if state else {}, connections))
    if problems:
        raise KdeclareError(*problems, exit_code=ExitCode.DENIED)


def _find_created_by(run_id: str, store: StateStore) -> frozenset[ResourceId]:
    if run_id not in store.runs():
        raise KdeclareError(
            error(
                "unknown-run",
                "The run to undo is not in the state",
                f"The plan undoes run {run_id}, which this state does not have. Nothing was applied.",
                hint="Check --state and --env; 'kdeclare history' lists the runs.",
            ),
            exit_code=ExitCode.STALE,
        )
    run = read_plan(store.plan_text(run_id), f"run {run_id}")
    created = (type_of(op).find_created(op) for op in run.operations)
    return frozenset(found for found in created if found is not None)


def _find_protected(
    deleted: Set[ResourceId],
    created: Set[ResourceId],
    records: Mapping[str, Json],
    connections: Connections,
) -> Iterator[Diagnostic]:
    for resource in sorted(deleted - created):
        if (records.get(str(resource)) or {}).get("preventDestroy"):
            yield _protected(resource, "Its lifecycle.preventDestroy was true when last applied.")
    for kind in sorted({resource.kind for resource in deleted}):
        names = {resource.name for resource in deleted if resource.kind == kind}
        for name, why in find_undeletable(kind, names, connections).items():
            yield _protected(ResourceId(kind, name), why)


def _protected(resource: ResourceId, why: str) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"{resource.kind} '{resource.name}' must not be deleted: {why} Nothing was applied.",
        hint="Make a new plan with 'kdeclare plan --out FILE' and look at it.",
        resource=str(resource),
    )
