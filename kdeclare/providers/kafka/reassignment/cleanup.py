"""What moves that are over have left to be done: throttles that nobody needs, leaders to be elected."""

from collections.abc import Collection
from dataclasses import replace

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import Cleanup, CleanupRequest
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import observe
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import topics_of
from kdeclare.providers.kafka.plan_options import CleanupOptions
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.batching import TOGETHER
from kdeclare.providers.kafka.reassignment.leftovers import Leftovers, read_leftovers
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.reassignment.operations.elect import election
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle, throttling

RESOURCE = ResourceId(TOGETHER.kind, "leftovers")
_CLEAR = ClearThrottle()


def find_cleanup(request: CleanupRequest) -> Cleanup | None:
    """Look for throttles that no move needs anymore, and for leaders to be elected. Raises Fault."""
    left = read_leftovers(request.pending)
    if not left:
        return None
    cluster = request.connections.get(KafkaConnection).cluster
    lists = {throttles.resource_of(entity).name for entity in left.throttles if entity.startswith("TOPIC/")}
    topics = topics_of((*left.elections, *left.moves)) | lists
    live = observe(cluster, throttles.query((), topics))
    still = tuple(p for p in left.moves if TopicPartition.parse(p) in live.moves)
    pending = request.pending
    if still != left.moves:
        pending = replace(left, moves=still).write_to(pending)
    if still and request.patient:
        return Cleanup((), still, pending)
    chosen = request.options.find(CleanupOptions)
    keep = chosen is not None and chosen.keep_throttles
    operations = tidying(left, live, _find_relocating(cluster, left), keep_throttles=keep)
    return Cleanup(operations, still, pending)


def _find_relocating(cluster: Cluster, left: Leftovers) -> frozenset[int]:
    """The brokers that are slowed down in moving replicas between log directories and are still at it."""
    slowed = throttles.brokers_of({e: k for e, k in left.throttles.items() if throttles.DIRS_RATE in k})
    if not slowed:
        return frozenset()
    there = cluster.log_dirs()
    return frozenset(b for b in slowed if any(log_dir.arriving for log_dir in there.get(b, ())))


def tidying(
    left: Leftovers, live: KafkaState, relocating: Collection[int], *, keep_throttles: bool
) -> tuple[Operation, ...]:
    """What can be done now. Pure.

    relocating: brokers that are still moving replicas between log directories.
    """
    down = [broker.id for broker in live.cluster.brokers if broker.fenced]
    mine = [move for partition, move in live.moves.items() if str(partition) in left.moves]
    involved = {broker for move in mine for broker in move.replicas}.union(relocating)
    needless = throttles.needless(left.throttles, live.moves.keys(), involved)
    entries, _ = throttles.without_brokers(needless, down)
    clear = entries and not keep_throttles
    found = [throttling(_CLEAR, str(RESOURCE), RESOURCE, entries, ThrottleArgs({}, ()))] if clear else []
    due = {p: b for p, b in left.elections.items() if _is_due(TopicPartition.parse(p), b, live)}
    return (*found, *([election(str(RESOURCE), RESOURCE, due, None)] if due else ()))


def _is_due(partition: TopicPartition, preferred: int, live: KafkaState) -> bool:
    """Whether there is something to be done now: elect it, or forget about it as another is preferred."""
    if partition in live.moves:
        return False
    topic = live.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return True
    state = topic.partitions[partition.partition]
    return state.replicas[:1] != (preferred,) or preferred in live.cluster.serving.intersection(state.isr)
