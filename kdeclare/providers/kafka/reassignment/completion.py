"""Measure the progress of replica moves in copied bytes, and check whether reassignments are complete."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from kdeclare.core.clock import Clock
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.completion import Completion, WorkProgress
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import MoveProgress, OperationResult, PendingPart, Status
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs, get_pace, list_partitions

STALLED_AFTER_S = 30.0
"""A move that copies no bytes for this many seconds is reported as stalled."""

_SIZES_INTERVAL_S = 2.0
_RATE_WINDOW_S = 30.0

Sizes = Mapping[TopicPartition, Mapping[int, int]]
"""The size of each replica in bytes, by partition and broker."""


class MoveMeter:
    """Measures the progress of moves from one call of `look` to the next. Not thread-safe."""

    def __init__(
        self, cluster: Cluster, clock: Clock, planned_copies: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Prepare to measure the progress of moves. No request is sent yet.

        planned_copies: the number of new replicas of each partition, for all partitions that will be moved.
        """
        self._planned_copies = dict(planned_copies or {})
        self._cluster = cluster
        self._clock = clock
        self._tracked: set[TopicPartition] = set()
        self._open_partitions: set[TopicPartition] = (
            set()
        )  # partitions that were still moving in the last call of `look`
        self._partitions_total = len(self._planned_copies)
        self._copied_total = 0
        self._bytes_total = 0
        self._expected_bytes: dict[TopicPartition, int] = {}
        self._copied_bytes: dict[TopicPartition, int] = {}
        self._last_growth: dict[TopicPartition, float] = {}
        self._known_sizes: dict[tuple[TopicPartition, int], int] = {}
        self._samples: deque[tuple[float, int]] = deque()
        self._measured_at: float | None = None

    def look(self, live: KafkaState, partitions: Collection[TopicPartition]) -> MoveProgress:
        """Return the progress of the moves of ``partitions``.

        live: the topics of the partitions, and the moves in flight. Replica sizes are read at intervals. If
        the cluster does not return sizes, no copied bytes are counted.
        """
        now = self._clock.monotonic()
        # a difference of sets would iterate over all planned partitions in every call
        self._partitions_total += sum(
            p not in self._tracked and p not in self._planned_copies for p in set(partitions)
        )
        self._tracked.update(partitions)
        self._open_partitions.update(partitions)
        flying = sorted(p for p in self._open_partitions if p in live.moves)
        if flying and (self._measured_at is None or now - self._measured_at >= _SIZES_INTERVAL_S):
            self._measured_at = now
            self._measure_sizes(live, flying, now)
        for partition in self._open_partitions.difference(flying):
            self._set_copied(partition, self._expected_bytes.get(partition, 0))
        self._open_partitions = set(flying)
        copied, wanted = self._copied_total, self._bytes_total
        rate = self._compute_rate(now, copied)
        waits = self._find_pending_parts(live, flying, now)
        return MoveProgress(
            partitions=len(self._tracked) - len(flying),
            partitions_total=self._partitions_total,
            bytes=copied,
            bytes_total=wanted,
            rate=rate,
            left_s=(wanted - copied) / rate if rate and not any(item.down for item in waits) else None,
            waiting=waits,
            noun="partition",
            member="broker",
        )

    def _measure_sizes(self, live: KafkaState, in_flight: list[TopicPartition], now: float) -> None:
        planned_partitions = (
            [] if self._expected_bytes else self._planned_copies
        )  # only once, to estimate the remaining time
        sizes = read_replica_sizes(self._cluster, {p.topic for p in (*in_flight, *planned_partitions)})
        for partition in planned_partitions:
            size = max(sizes.get(partition, {0: 0}).values())
            self._set_expected(partition, size * self._planned_copies[partition])
        for partition in in_flight:
            move = live.moves[partition]
            sizes_by_broker = sizes.get(partition, {})
            full_size = max(
                (size for broker, size in sizes_by_broker.items() if broker not in move.adding), default=0
            )
            # the last reported sizes of a broker stay valid while it is down
            self._known_sizes |= {(partition, broker): size for broker, size in sizes_by_broker.items()}
            copied = sum(
                min(self._known_sizes.get((partition, broker), 0), full_size) for broker in move.adding
            )
            if copied != self._copied_bytes.get(partition) or partition not in self._last_growth:
                self._last_growth[partition] = now
            self._set_expected(partition, full_size * len(move.adding))
            self._set_copied(partition, copied)

    # Totals are updated incrementally, to avoid summing over thousands of partitions in every call of `look`.

    def _set_expected(self, partition: TopicPartition, size: int) -> None:
        self._bytes_total += size - self._expected_bytes.get(partition, 0)
        self._expected_bytes[partition] = size

    def _set_copied(self, partition: TopicPartition, size: int) -> None:
        self._copied_total += size - self._copied_bytes.get(partition, 0)
        self._copied_bytes[partition] = size

    def _compute_rate(self, now: float, copied: int) -> float | None:
        samples = self._samples
        if not samples or copied != samples[-1][1] or now - samples[-1][0] >= _SIZES_INTERVAL_S:
            samples.append((now, copied))
        while len(samples) > 2 and now - samples[0][0] > _RATE_WINDOW_S:
            samples.popleft()
        (first_time, first_copied), (last_time, last_copied) = samples[0], samples[-1]
        return (
            (last_copied - first_copied) / (last_time - first_time)
            if last_time - first_time >= 1 and last_copied > first_copied
            else None
        )

    def _find_pending_parts(
        self, live: KafkaState, in_flight: list[TopicPartition], now: float
    ) -> tuple[PendingPart, ...]:
        """Return the partitions that wait for a broker that is down, and the partitions that are stalled."""
        pending_parts = [
            item
            for partition in in_flight
            if (
                item := build_pending_part(
                    live, partition, now - self._last_growth.get(partition, now) >= STALLED_AFTER_S
                )
            )
            and (item.down or item.stalled)
        ]
        return tuple(sorted(pending_parts, key=lambda item: (not item.down, item.partition)))


def build_pending_part(live: KafkaState, partition: TopicPartition, is_stalled: bool = False) -> PendingPart:
    """Return the brokers that the move of one partition waits for."""
    move, topic_state = live.moves[partition], live.topics.get(partition.topic)
    has_state = topic_state is not None and partition.partition < len(topic_state.partitions)
    isr = topic_state.partitions[partition.partition].isr if topic_state and has_state else ()
    brokers = tuple(broker for broker in move.adding if broker not in isr)
    serving = live.cluster.serving_broker_ids
    return PendingPart(str(partition), brokers, tuple(b for b in brokers if b not in serving), is_stalled)


def read_replica_sizes(cluster: Cluster, topics: Collection[str]) -> Sizes:
    """Return the sizes of all replicas of these topics.

    The result is empty if the cluster does not return sizes.
    """
    sizes: dict[TopicPartition, dict[int, int]] = {}
    try:
        log_dirs_by_broker = cluster.log_dirs(sorted(topics))
    except Fault:  # sizes are used for display only, so a failure to read them is ignored
        return {}
    for broker, log_dirs in log_dirs_by_broker.items():
        for log_dir in log_dirs:
            for partition, size in log_dir.sizes.items():
                sizes.setdefault(partition, {})[broker] = size
    return sizes


def explain_pending_part(pending_part: PendingPart) -> str:
    """Describe the brokers that a partition waits for."""
    names = ", ".join(
        f"broker {b}{' (down)' if b in pending_part.down else ''}" for b in pending_part.brokers
    )
    return (
        f"{pending_part.partition} waits for {names}"
        if names
        else f"the move of {pending_part.partition} is about to finish"
    )


_MOVE_CONTINUES = "The move continues in the cluster. Run kdeclare status to see its progress."
_CLEANUP_LATER = (
    "The move continues in the cluster. After the move has finished, kdeclare status --watch or the next "
    "apply executes this operation."
)
_OVERRIDDEN = (
    "The move ended, but the partition does not have the requested replicas: another client cancelled or "
    "changed the move."
)
_MAX_NAMED = 3


class MoveCompletion(Completion):
    """Replica moves are complete once the cluster no longer lists their partitions as moving (KIP-455)."""

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether any client is moving one of the partitions of ``op``."""
        return bool(_find_moving_partitions(op, live.get(KafkaState)))

    def find_limit_s(self, op: Operation) -> float | None:
        """Return the timeout in the pace of ``op``, in seconds."""
        return get_pace(op).timeout_s

    def report_started(self, op: Operation) -> OperationResult:
        """Return the result of an operation whose completion the run does not wait for.

        The message states that the move continues in the cluster. For a cleanup step, the message also names
        the command that performs the step later.
        """
        text = _CLEANUP_LATER if get_operation_type(op).is_cleanup else _MOVE_CONTINUES
        return OperationResult(op.id, Status.STARTED, None, text)

    def report_timeout(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        """Report the partitions that are still moving, and the brokers that each partition waits for."""
        state = live.get(KafkaState) if live is not None else None
        moving_partitions = (
            [TopicPartition.parse(p) for p in _find_moving_partitions(op, state)] if state is not None else []
        )
        pending_text = (
            "; ".join(
                explain_pending_part(build_pending_part(state, p)) for p in moving_partitions[:_MAX_NAMED]
            )
            if state is not None
            else ""
        )
        others_text = (
            f", and {len(moving_partitions) - _MAX_NAMED} more partitions"
            if len(moving_partitions) > _MAX_NAMED
            else ""
        )
        text = (
            f"Still moving after {limit_s:g} s: "
            f"{pending_text or 'the brokers do not respond'}{others_text}. {_MOVE_CONTINUES}"
        )
        return OperationResult(op.id, Status.STARTED, "move-timeout", text)

    def report_overridden(self, op: Operation) -> OperationResult:
        """Report that another client cancelled the move or changed its target."""
        return OperationResult(op.id, Status.FAILED, "move-overridden", _OVERRIDDEN)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> "MoveTracker":
        """Return a tracker that measures the progress of the moves, including the copied bytes."""
        cluster = connections.get(KafkaConnection).cluster
        return MoveTracker(MoveMeter(cluster, clock, _count_copies(operations)))


MOVE_COMPLETION = MoveCompletion()


def is_reassignment(op: Operation) -> bool:
    """Whether ``op`` moves replicas between brokers."""
    return isinstance(op.args, ReassignArgs)  # plans call this several times per operation


class MoveTracker:
    """Tracks the moves of one run, or the moves of other clients that block the run."""

    def __init__(self, meter: MoveMeter) -> None:
        """Create a tracker for the progress that ``meter`` measures."""
        self._meter = meter

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """See `WorkTracker`. The progress of cleanup steps is not reported."""
        awaiting = [op for op in awaiting if not get_operation_type(op).is_cleanup]
        label = "Moving replicas" if working else "Waiting for moves in progress"
        partitions = [TopicPartition.parse(p) for op in working or awaiting for p in list_partitions(op)]
        return WorkProgress(label, self._meter.look(live.get(KafkaState), partitions)) if partitions else None


def _find_moving_partitions(op: Operation, live: KafkaState) -> tuple[str, ...]:
    return tuple(p for p in list_partitions(op) if TopicPartition.parse(p) in live.moves)


def _count_copies(operations: Iterable[Operation]) -> dict[TopicPartition, int]:
    return {
        TopicPartition.parse(name): len(set(after) - set(get_replicas_before(op, name)))
        for op in operations
        if is_reassignment(op)
        for name, after in get_targets(op).items()
    }
