"""Tidying up after moves that went on in the cluster: by a plan of its own, journalled like any other."""

from dataclasses import dataclass, replace

from kdeclare.core.plan import Base, ClusterRef, Plan, Summary
from kdeclare.core.run import RunResult
from kdeclare.core.state import State
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.lookout import RunOptions
from kdeclare.providers.kafka.collector import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.operations.partitions import topics_of
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.cleanup import tidying
from kdeclare.providers.kafka.reassignment.leftovers import Leftovers, leftovers_of


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
    if state is None or not state.pending_cleanup:
        return Tidied(None, ())
    left = leftovers_of(state)
    lists = {throttles.resource_of(entity).name for entity in left.throttles if entity.startswith("TOPIC/")}
    topics = topics_of((*left.elections, *left.moves)) | lists
    cluster = applier.connections.get(KafkaConnection).cluster
    live = observe(cluster, throttles.query((), topics))
    still = tuple(p for p in left.moves if TopicPartition.parse(p) in live.moves)
    if still != left.moves:
        state = _without_moves(applier, state, still)
    if still and patient:
        return Tidied(None, still)
    relocating = _relocating(cluster, left)
    operations = tidying(left, live, relocating, keep_throttles=keep_throttles)
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


def _without_moves(applier: Applier, state: State, still: tuple[str, ...]) -> State:
    left = replace(leftovers_of(state), moves=still).write_to(state.pending_cleanup)
    state = replace(state, serial=state.serial + 1, pending_cleanup=left)
    applier.store.write(state)
    return state


def _relocating(cluster: Cluster, left: Leftovers) -> frozenset[int]:
    """The brokers that are slowed down in moving replicas between log directories and are still at it."""
    slowed = throttles.brokers_of({e: k for e, k in left.throttles.items() if throttles.DIRS_RATE in k})
    if not slowed:
        return frozenset()
    there = cluster.log_dirs()
    return frozenset(b for b in slowed if any(log_dir.arriving for log_dir in there.get(b, ())))
