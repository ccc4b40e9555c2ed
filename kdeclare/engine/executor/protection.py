"""Check again at apply what must never be deleted: by the state and the live cluster, not by the plan."""

from collections.abc import Iterator

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, denied, error
from kdeclare.core.exits import ExitCode
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Plan
from kdeclare.core.registry import type_of
from kdeclare.core.state import State
from kdeclare.engine.planning.planfile import read_plan
from kdeclare.engine.state.port import StateStore
from kdeclare.providers.kafka.collector import KafkaConnection
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.topic.diff import PREVENT_DESTROY


def refuse_protected(plan: Plan, state: State | None, connections: Connections, store: StateStore) -> None:
    """Refuse a plan that deletes a protected or internal topic. Raises KdeclareError (exit 3), and Fault.

    A rollback may delete a protected topic that its run created. A rollback of a run that does not exist is
    refused (exit code 4).
    """
    created = _topics_created_by(plan.undoes, store) if plan.undoes is not None else frozenset()
    deletions = (op for op in plan.operations if type_of(op).deletes)
    deleted = {str(op.args["topic"]) for op in deletions}
    if not deleted:
        return
    problems = list(_find_protected(deleted, created, state, connections.get(KafkaConnection).cluster))
    if problems:
        raise KdeclareError(*problems, exit_code=ExitCode.DENIED)


def _topics_created_by(run_id: str, store: StateStore) -> frozenset[str]:
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
    return frozenset(str(op.args["topic"]) for op in run.operations if op.verb == "topic.create")


def _find_protected(
    deleted: set[str], created: frozenset[str], state: State | None, cluster: Cluster
) -> Iterator[Diagnostic]:
    records = state.resources if state else {}
    for name in sorted(deleted - created):
        if (records.get(f"Topic/{name}") or {}).get("preventDestroy"):
            yield _protected(name, "Its lifecycle.preventDestroy was true when last applied.")
    for topic in cluster.topics(sorted(deleted)).values():
        if topic.internal:
            yield _protected(topic.name, "It is one of Kafka's internal topics.")


def _protected(name: str, why: str) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"Topic '{name}' must not be deleted: {why} Nothing was applied.",
        hint="Make a new plan with 'kdeclare plan --out FILE' and look at it.",
        resource=f"Topic/{name}",
    )
