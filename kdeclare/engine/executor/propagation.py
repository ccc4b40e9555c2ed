"""Read your own writes: wait until brokers show what recent runs of the project have done.

Brokers answer from a copy of the metadata that trails the controller, and apply dynamic configs later
still. A plan made on such an answer takes the project's own writes for absent, or for someone else's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.faults import Fault
from kdeclare.core.operation_type import View, is_other_object
from kdeclare.core.operations import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.patience import VISIBILITY_TIMEOUT_S
from kdeclare.core.plan import Plan
from kdeclare.core.progress import Progress, quietly
from kdeclare.core.registry import type_of
from kdeclare.core.run import Status
from kdeclare.engine.executor.entries import RunRecord
from kdeclare.engine.executor.stored_runs import RUN_UNREADABLE, read_run, read_run_plan
from kdeclare.engine.observation import connections_to, observe, select_all
from kdeclare.engine.state.port import StateStore
from kdeclare.providers.kafka.collector import CLUSTER, select_topics
from kdeclare.providers.kafka.existence import find_existing
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.port import TOPIC_AUTHORIZATION_FAILED, Cluster
from kdeclare.providers.kafka.selection import KafkaSelection

T = TypeVar("T")

VISIBLE_WITHIN_S = VISIBILITY_TIMEOUT_S
"""How long an acknowledged write may stay invisible; after that its absence is drift like any other."""

WAITING = "Waiting for brokers to show what earlier runs did"

_FIRST_STEP_S = 0.1
_LONGEST_STEP_S = 2.0


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """An acknowledged write that brokers do not show yet.

    elements: those of the operation's view that are still as before. until: after that it is drift.
    """

    run_id: str
    operation: Operation
    elements: frozenset[str]
    until: datetime


def await_visibility(
    store: StateStore,
    cluster: Cluster,
    clock: Clock,
    progress: Progress = quietly,
    *,
    limit_s: float = VISIBLE_WITHIN_S,
    wait: bool = True,
) -> tuple[PendingWrite, ...]:
    """Wait for what recent runs wrote; what is still invisible.

    limit_s: for how long after its acknowledgment a write is waited for. wait: False looks only once.
    Raises Fault when the cluster does not answer.
    """
    begun, step = clock.monotonic(), _FIRST_STEP_S
    recent = _recent_writes(store, clock.now(), limit_s)
    pending = _still_pending(recent, cluster, clock.now())
    total = len(pending)
    while pending and wait and clock.monotonic() - begun < limit_s:
        progress(WAITING, total - len(pending), total)
        clock.sleep(step)
        step = min(step * 2, _LONGEST_STEP_S)
        pending = _still_pending(pending, cluster, clock.now())
    return tuple(pending)


def _recent_writes(store: StateStore, now: datetime, limit_s: float) -> list[PendingWrite]:
    """What runs have written lately and not overwritten since."""
    since = now - timedelta(seconds=limit_s)
    recent: list[RunRecord] = []
    for run_id in reversed(store.runs()):
        record = _readable(partial(read_run, store, run_id))
        if record is None:
            continue
        if all(_parse(at) < since for at in record.ended_at.values()):
            break  # runs follow each other, so the ones before it are older
        recent.append(record)
    latest: dict[str, tuple[str, Operation, str, datetime]] = {}
    for record in reversed(recent):
        plan = _readable(partial(read_run_plan, store, record.run_id))
        if plan is None:
            continue
        _overlay(latest, plan, record, since, timedelta(seconds=limit_s))
    elements: dict[tuple[str, str], set[str]] = {}
    found: dict[tuple[str, str], tuple[Operation, datetime]] = {}
    for run_id, op, element, until in latest.values():
        elements.setdefault((run_id, op.id), set()).add(element)
        found[run_id, op.id] = (op, until)
    return [
        PendingWrite(run_id, op, frozenset(elements[run_id, id_]), until)
        for (run_id, id_), (op, until) in found.items()
    ]


def _readable(read: Callable[[], T]) -> T | None:
    """What is read of a run; None where it is damaged, as nobody knows then what to wait for."""
    try:
        return read()
    except KdeclareError as problem:
        if any(d.code != RUN_UNREADABLE for d in problem.diagnostics):
            raise
        return None


def _overlay(
    latest: dict[str, tuple[str, Operation, str, datetime]],
    plan: Plan,
    record: RunRecord,
    since: datetime,
    limit: timedelta,
) -> None:
    """Let one run overwrite what earlier ones wrote: by claim, what is expected to be visible."""
    for op in plan.operations:
        result = record.results.get(op.id)
        verb = type_of(op)
        if result is None or op.id not in record.begun or _asks_others(op):
            continue
        produced = verb.produces(op)
        for claim in produced & latest.keys():
            del latest[claim]  # also where its outcome is not known: then nobody knows what to expect
        if verb.deletes:
            gone = select_topics(verb.select(op))
            for claim, (_, earlier, _, _) in list(latest.items()):
                if gone & select_topics(type_of(earlier).select(earlier)):
                    del latest[claim]
        at = _parse(record.ended_at[op.id])
        if result.status is not Status.DONE or at < since:
            continue
        for element, claim in verb.claims(op).items():
            if claim in produced:
                latest[claim] = (record.run_id, op, element, at + limit)


def _asks_others(op: Operation) -> bool:
    """Whether its view is not metadata: Connect workers and log directories are asked directly."""
    selections = type_of(op).select(op)
    asked = CLUSTER.merge(selections)
    return asked is None or bool(asked.log_dirs) or any(not isinstance(s, KafkaSelection) for s in selections)


def _still_pending(writes: Iterable[PendingWrite], cluster: Cluster, now: datetime) -> list[PendingWrite]:
    writes = [write for write in writes if now < write.until]
    if writes and cluster.is_caught_up():
        writes = [write for write in writes if _has_broker_configs(write.operation)]
    if not writes:
        return []
    selections = select_all(write.operation for write in writes)
    try:
        live = observe(connections_to(cluster), selections)
    except Fault as fault:
        if fault.error != TOPIC_AUTHORIZATION_FAILED:
            raise
        # another login wrote them: what this one may not see, it cannot wait for
        hidden = cluster.hidden_topics(sorted(select_topics(tuple(selections))))
        return _still_pending([w for w in writes if hidden.isdisjoint(_topics(w))], cluster, now)
    pending = [write for write in writes if _is_pending(write, live)]
    created = {w.operation.id: w.operation.args["topic"] for w in pending if _creates(w.operation)}
    absent = find_existing(cluster, created.values()).absent  # someone else deleted these
    return [write for write in pending if created.get(write.operation.id) not in absent]


def _creates(op: Operation) -> bool:
    return op.verb == "topic.create"


def _topics(write: PendingWrite) -> frozenset[str]:
    return select_topics(type_of(write.operation).select(write.operation))


def _has_broker_configs(op: Operation) -> bool:
    """Whether it changes configs that brokers apply later than the rest of the metadata."""
    asked = CLUSTER.merge(type_of(op).select(op))
    return asked is not None and any(resource.scope is ConfigScope.BROKER for resource in asked.configs)


def _is_pending(write: PendingWrite, live: LiveState) -> bool:
    """Whether something is still as before; what is neither as before nor as written, others changed."""
    op = write.operation
    verb = type_of(op)
    now, after = verb.view(op, live), verb.expected_state(op)
    if is_other_object(op, now):
        return False
    return any(
        element in after and now.get(element) != after[element] and _is_as_before(op, element, now)
        for element in write.elements
    )


def _is_as_before(op: Operation, element: str, now: View) -> bool:
    """Whether it was so before; what takes throttles away expects nothing, and takes away all it finds."""
    return element not in op.expect or bool(now.get(element) == op.expect[element])


def _parse(at: str) -> datetime:
    return datetime.fromisoformat(at)
