"""Tidying up after moves that went on in the cluster: by a plan of its own, journalled like any other."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kdeclare.applying.apply import Applier
from kdeclare.applying.lookout import RunOptions
from kdeclare.cluster.port import Cluster
from kdeclare.kinds import throttles
from kdeclare.kinds.verbs.elect import ElectLeaders
from kdeclare.kinds.verbs.partitions import topics_of
from kdeclare.kinds.verbs.throttle import ClearThrottle, SetThrottle
from kdeclare.model.ids import ResourceId, TopicPartition
from kdeclare.model.jsontypes import Json
from kdeclare.model.live import Snapshot
from kdeclare.model.operations import Operation
from kdeclare.model.plan import Base, ClusterRef, Plan, Summary
from kdeclare.model.run import RunResult
from kdeclare.model.state import Entries, Leftovers, State
from kdeclare.planning.observe import observe

_RESOURCE = ResourceId("Moves", "leftovers")
_CLEAR, _SET, _ELECT = ClearThrottle(), SetThrottle(), ElectLeaders()


@dataclass(frozen=True, slots=True)
class Tidied:
    """What became of leftovers: the run that took some away, if any, and what is still moving."""

    run: RunResult | None
    moving: tuple[str, ...]


def tidy(
    applier: Applier,
    project: str,
    env: str,
    cluster_name: str,
    *,
    keep_throttles: bool = False,
    patient: bool = False,
) -> Tidied:
    """Take away throttles that no move needs any more, and elect leaders; the caller holds the lock.

    patient: only once all of kdeclare's own moves are over; who looks again and again would make a run of
    every partition that arrives. Raises Fault when the cluster does not answer.
    """
    state = applier.store.read()
    if state is None or not state.leftovers:
        return Tidied(None, ())
    left = state.leftovers
    lists = {throttles.resource_of(entity).name for entity in left.throttles if entity.startswith("TOPIC/")}
    topics = topics_of((*left.elections, *left.moves)) | lists
    live = observe(applier.cluster, throttles.query((), topics))
    still = tuple(p for p in left.moves if TopicPartition.parse(p) in live.moves)
    if still != left.moves:
        state = _without_moves(applier, state, still)
    if still and patient:
        return Tidied(None, still)
    relocating = _relocating(applier.cluster, left)
    operations = _operations(left, live, relocating, keep_throttles=keep_throttles)
    if not operations:
        return Tidied(None, still)
    plan = Plan(
        project=project,
        env=env,
        cluster=ClusterRef(live.cluster.id, cluster_name),
        base=Base(state.lineage, state.serial),
        summary=Summary(),
        operations=operations,
    )
    return Tidied(applier.apply(plan, RunOptions(wait=False), skip_stale=True), still)


def is_housekeeping(plan: Plan) -> bool:
    """Whether a plan only tidies up: there is nothing in it that a person would want undone."""
    return bool(plan.operations) and all(op.resource == _RESOURCE for op in plan.operations)


def _without_moves(applier: Applier, state: State, still: tuple[str, ...]) -> State:
    left = replace(state.leftovers, moves=still)
    state = replace(state, serial=state.serial + 1, leftovers=left)
    applier.store.write(state)
    return state


def _relocating(cluster: Cluster, left: Leftovers) -> frozenset[int]:
    """The brokers that are slowed down in moving replicas between log directories and are still at it."""
    slowed = throttles.brokers_of({e: k for e, k in left.throttles.items() if throttles.DIRS_RATE in k})
    if not slowed:
        return frozenset()
    there = cluster.log_dirs()
    return frozenset(b for b in slowed if any(log_dir.arriving for log_dir in there.get(b, ())))


def _operations(
    left: Leftovers, live: Snapshot, relocating: Collection[int], *, keep_throttles: bool
) -> tuple[Operation, ...]:
    down = [broker.id for broker in live.cluster.brokers if broker.fenced]
    mine = [move for partition, move in live.moves.items() if str(partition) in left.moves]
    involved = {broker for move in mine for broker in move.replicas}.union(relocating)
    needless = throttles.needless(left.throttles, live.moves.keys(), involved)
    entries, _ = throttles.without_brokers(needless, down)
    found = [_clearing(entries)] if entries and not keep_throttles else []
    due = {p: b for p, b in left.elections.items() if _is_due(TopicPartition.parse(p), b, live)}
    return (*found, *([_election(due)] if due else ()))


def _is_due(partition: TopicPartition, preferred: int, live: Snapshot) -> bool:
    """Whether there is something to be done now: elect it, or forget about it as another is preferred."""
    if partition in live.moves:
        return False
    topic = live.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return True
    state = topic.partitions[partition.partition]
    serving = {broker.id for broker in live.cluster.brokers if not broker.fenced}
    return state.replicas[:1] != (preferred,) or (preferred in state.isr and preferred in serving)


def _clearing(entries: Entries) -> Operation:
    args: dict[str, Json] = {"entries": {e: dict(k) for e, k in entries.items()}, "partitions": []}
    inverse: dict[str, Json] = {"verb": _SET.name, "args": args}
    return Operation(f"{_CLEAR.name}:{_RESOURCE}", _CLEAR.name, _RESOURCE, args, {}, inverse=inverse)


def _election(preferred: Mapping[str, int]) -> Operation:
    args: dict[str, Json] = {"partitions": dict(preferred)}
    inverse: dict[str, Json] = {"verb": _ELECT.name, "args": args}
    return Operation(f"{_ELECT.name}:{_RESOURCE}", _ELECT.name, _RESOURCE, args, {}, inverse=inverse)
