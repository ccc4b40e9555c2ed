"""Cleanup after finished moves: remove throttles, also after a crash, and elect preferred leaders."""

from collections.abc import Collection
from dataclasses import replace

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import Cleanup, CleanupRequest
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import observe
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import collect_topics
from kdeclare.providers.kafka.plan_options import CleanupOptions
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.reassignment.operations.elect import build_elect_operation
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle, build_throttle_operation
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import PendingMoveCleanup, bind_move_cleanup
from kdeclare.providers.kafka.reassignment.shared_resource import SHARED_RESOURCE

RESOURCE = ResourceId(SHARED_RESOURCE.kind, "leftovers")
_CLEAR = ClearThrottle()


def find_cleanup(request: CleanupRequest) -> Cleanup | None:
    """Find throttles that are no longer needed, and leader elections that are due.

    Return the operations for both as one cleanup, or None if no cleanup is pending. Raises Fault.
    """
    move_cleanup = bind_move_cleanup(request.pending)
    if not move_cleanup:
        return None
    cluster = request.connections.get(KafkaConnection).cluster
    listed_topics = {
        throttles.parse_entity(entity).name
        for entity in move_cleanup.throttles
        if entity.startswith("TOPIC/")
    }
    topics = collect_topics((*move_cleanup.elections, *move_cleanup.moves)) | listed_topics
    live = observe(cluster, throttles.build_selection((), topics))
    ongoing_moves = tuple(p for p in move_cleanup.moves if TopicPartition.parse(p) in live.moves)
    pending = request.pending
    if ongoing_moves != move_cleanup.moves:
        pending = replace(move_cleanup, moves=ongoing_moves).merge_into(pending)
    if ongoing_moves and request.patient:
        return Cleanup((), ongoing_moves, pending)
    cleanup_options = request.options.find(CleanupOptions)
    keep_throttles = cleanup_options is not None and cleanup_options.keep_throttles
    operations = build_cleanup_operations(
        move_cleanup, live, _find_relocating_brokers(cluster, move_cleanup), keep_throttles=keep_throttles
    )
    return Cleanup(operations, ongoing_moves, pending)


def _find_relocating_brokers(cluster: Cluster, move_cleanup: PendingMoveCleanup) -> frozenset[int]:
    """Return the brokers that still move replicas between log directories at a rate set by kdeclare."""
    throttled_brokers = throttles.list_brokers(
        {e: k for e, k in move_cleanup.throttles.items() if throttles.LOG_DIRS_RATE_KEY in k}
    )
    if not throttled_brokers:
        return frozenset()
    log_dirs = cluster.log_dirs()
    return frozenset(b for b in throttled_brokers if any(log_dir.arriving for log_dir in log_dirs.get(b, ())))


def build_cleanup_operations(
    move_cleanup: PendingMoveCleanup,
    live: KafkaState,
    relocating_brokers: Collection[int],
    *,
    keep_throttles: bool,
) -> tuple[Operation, ...]:
    """Build the cleanup operations that are possible now. Pure.

    relocating_brokers: brokers that are still moving replicas between log directories.
    """
    fenced_brokers = [broker.id for broker in live.cluster.brokers if broker.fenced]
    own_moves = [move for partition, move in live.moves.items() if str(partition) in move_cleanup.moves]
    involved_brokers = {broker for move in own_moves for broker in move.replicas}.union(relocating_brokers)
    unneeded_entries = throttles.find_unneeded_entries(
        move_cleanup.throttles, live.moves.keys(), involved_brokers
    )
    entries, _ = throttles.split_unreachable(unneeded_entries, fenced_brokers)
    should_clear = entries and not keep_throttles
    clear_operations = (
        [build_throttle_operation(_CLEAR, str(RESOURCE), RESOURCE, entries, ThrottleArgs({}, ()))]
        if should_clear
        else []
    )
    due_elections = {
        p: b for p, b in move_cleanup.elections.items() if _is_election_due(TopicPartition.parse(p), b, live)
    }
    return (
        *clear_operations,
        *([build_elect_operation(str(RESOURCE), RESOURCE, due_elections, None)] if due_elections else ()),
    )


def _is_election_due(partition: TopicPartition, preferred_leader: int, live: KafkaState) -> bool:
    """Return True if the election can run now, and also if it is obsolete.

    An election is obsolete if the partition no longer exists, or if a different replica is the preferred
    leader.
    """
    if partition in live.moves:
        return False
    topic = live.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return True
    partition_state = topic.partitions[partition.partition]
    return partition_state.replicas[:1] != (
        preferred_leader,
    ) or preferred_leader in live.cluster.serving_broker_ids.intersection(partition_state.isr)
