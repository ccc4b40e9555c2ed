"""How far moves have got, by copied bytes, and when a reassignment is complete."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from kdeclare.core.clock import Clock
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import Completion, WorkProgress
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import MoveProgress, OperationResult, Status, Waiting
from kdeclare.core.provider.registry import type_of
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.operations.arguments import find_pace, find_partitions

STALLED_S = 30.0
"""Without a byte for so long, a partition is worth naming."""

_SIZES_EVERY_S = 2.0
_RATE_OVER_S = 30.0

Sizes = Mapping[TopicPartition, Mapping[int, int]]
"""Bytes of each replica, by partition and broker."""


class Movement:
    """Follows some partitions from look to look. Not for several threads."""

    def __init__(
        self, cluster: Cluster, clock: Clock, planned: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Nothing is asked before `look`. planned: all that will be moved, with how many copies of each."""
        self._planned = dict(planned or {})
        self._cluster = cluster
        self._clock = clock
        self._seen: set[TopicPartition] = set()
        self._open: set[TopicPartition] = set()  # seen, and not over at the last look
        self._total = len(self._planned)
        self._bytes = 0
        self._bytes_wanted = 0
        self._wanted: dict[TopicPartition, int] = {}
        self._copied: dict[TopicPartition, int] = {}
        self._grew: dict[TopicPartition, float] = {}
        self._sizes: dict[tuple[TopicPartition, int], int] = {}
        self._samples: deque[tuple[float, int]] = deque()
        self._sized_at: float | None = None

    def look(self, live: KafkaState, partitions: Collection[TopicPartition]) -> MoveProgress:
        """Where the partitions are now. ``live`` holds their topics and moves.

        Sizes are asked for now and then only; a cluster that does not give them is no reason to stop.
        """
        now = self._clock.monotonic()
        # one by one: a difference of sets would go through all that is planned at every look
        self._total += sum(p not in self._seen and p not in self._planned for p in set(partitions))
        self._seen.update(partitions)
        self._open.update(partitions)
        flying = sorted(p for p in self._open if p in live.moves)
        if flying and (self._sized_at is None or now - self._sized_at >= _SIZES_EVERY_S):
            self._sized_at = now
            self._measure(live, flying, now)
        for partition in self._open.difference(flying):
            self._set_copied(partition, self._wanted.get(partition, 0))
        self._open = set(flying)
        copied, wanted = self._bytes, self._bytes_wanted
        rate = self._rate(now, copied)
        waits = self._waiting(live, flying, now)
        return MoveProgress(
            partitions=len(self._seen) - len(flying),
            partitions_total=self._total,
            bytes=copied,
            bytes_total=wanted,
            rate=rate,
            left_s=(wanted - copied) / rate if rate and not any(item.down for item in waits) else None,
            waiting=waits,
            noun="partition",
            member="broker",
        )

    def _measure(self, live: KafkaState, flying: list[TopicPartition], now: float) -> None:
        ahead = [] if self._wanted else self._planned  # once, for the estimate
        sizes = replica_sizes(self._cluster, {p.topic for p in (*flying, *ahead)})
        for partition in ahead:
            size = max(sizes.get(partition, {0: 0}).values())
            self._set_wanted(partition, size * self._planned[partition])
        for partition in flying:
            move = live.moves[partition]
            there = sizes.get(partition, {})
            whole = max((size for broker, size in there.items() if broker not in move.adding), default=0)
            # what a broker has told stays true while it is down
            self._sizes |= {(partition, broker): size for broker, size in there.items()}
            copied = sum(min(self._sizes.get((partition, broker), 0), whole) for broker in move.adding)
            if copied != self._copied.get(partition) or partition not in self._grew:
                self._grew[partition] = now
            self._set_wanted(partition, whole * len(move.adding))
            self._set_copied(partition, copied)

    # The sums are kept along, because thousands of partitions would be summed up again at every look.

    def _set_wanted(self, partition: TopicPartition, size: int) -> None:
        self._bytes_wanted += size - self._wanted.get(partition, 0)
        self._wanted[partition] = size

    def _set_copied(self, partition: TopicPartition, size: int) -> None:
        self._bytes += size - self._copied.get(partition, 0)
        self._copied[partition] = size

    def _rate(self, now: float, copied: int) -> float | None:
        samples = self._samples
        if not samples or copied != samples[-1][1] or now - samples[-1][0] >= _SIZES_EVERY_S:
            samples.append((now, copied))
        while len(samples) > 2 and now - samples[0][0] > _RATE_OVER_S:
            samples.popleft()
        (first, before), (last, after) = samples[0], samples[-1]
        return (after - before) / (last - first) if last - first >= 1 and after > before else None

    def _waiting(self, live: KafkaState, flying: list[TopicPartition], now: float) -> tuple[Waiting, ...]:
        """Those that wait for a broker that is down, and those to which nothing comes."""
        found = [
            item
            for partition in flying
            if (item := waiting(live, partition, now - self._grew.get(partition, now) >= STALLED_S))
            and (item.down or item.stalled)
        ]
        return tuple(sorted(found, key=lambda item: (not item.down, item.partition)))


def waiting(live: KafkaState, partition: TopicPartition, stalled: bool = False) -> Waiting:
    """For which brokers one partition in flight waits."""
    move, state = live.moves[partition], live.topics.get(partition.topic)
    known = state is not None and partition.partition < len(state.partitions)
    isr = state.partitions[partition.partition].isr if state and known else ()
    brokers = tuple(broker for broker in move.adding if broker not in isr)
    serving = live.cluster.serving
    return Waiting(str(partition), brokers, tuple(b for b in brokers if b not in serving), stalled)


def replica_sizes(cluster: Cluster, topics: Collection[str]) -> Sizes:
    """Bytes of all replicas of these topics; empty where the cluster does not say."""
    sizes: dict[TopicPartition, dict[int, int]] = {}
    try:
        found = cluster.log_dirs(sorted(topics))
    except Fault:  # it is only for people to look at
        return {}
    for broker, folders in found.items():
        for folder in folders:
            for partition, size in folder.sizes.items():
                sizes.setdefault(partition, {})[broker] = size
    return sizes


def told(item: Waiting) -> str:
    """For whom a partition waits, in words."""
    names = ", ".join(f"broker {b}{' (down)' if b in item.down else ''}" for b in item.brokers)
    return f"{item.partition} waits for {names}" if names else f"{item.partition} is about to end"


_GOES_ON = "The move goes on in the cluster; kdeclare status shows it."
_LATER = "The move goes on in the cluster; kdeclare status --watch, or the next apply, does this afterwards."
_OVERRIDDEN = "The move ended, but the replicas are not the ones asked for: someone cancelled or changed it."
_NAMED = 3


class MoveCompletion(Completion):
    """Moves of replicas are over when the cluster lists no reassignment of their partitions (KIP-455)."""

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether one of its partitions is being moved, by anyone."""
        return bool(_find_moving(op, live.get(KafkaState)))

    def find_limit_s(self, op: Operation) -> float | None:
        """As its own pace says."""
        return find_pace(op).timeout_s

    def leave(self, op: Operation) -> OperationResult:
        """The move goes on; what tidies up after it comes later."""
        text = _LATER if type_of(op).is_cleanup else _GOES_ON
        return OperationResult(op.id, Status.STARTED, None, text)

    def give_up(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        """Name the partitions that are still being moved, and the brokers that they wait for."""
        state = live.get(KafkaState) if live is not None else None
        moving = [TopicPartition.parse(p) for p in _find_moving(op, state)] if state is not None else []
        named = "; ".join(told(waiting(state, p)) for p in moving[:_NAMED]) if state is not None else ""
        more = f", and {len(moving) - _NAMED} more partitions" if len(moving) > _NAMED else ""
        text = f"Still moving after {limit_s:g} s: {named or 'the brokers do not answer'}{more}. {_GOES_ON}"
        return OperationResult(op.id, Status.STARTED, "move-timeout", text)

    def report_other_end(self, op: Operation) -> OperationResult:
        """Somebody has cancelled it, or sent the partitions elsewhere."""
        return OperationResult(op.id, Status.FAILED, "move-overridden", _OVERRIDDEN)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> "MoveTracker":
        """Follow copied bytes, too."""
        cluster = connections.get(KafkaConnection).cluster
        return MoveTracker(Movement(cluster, clock, _count_copies(operations)))


MOVES = MoveCompletion()


def moves_replicas(op: Operation) -> bool:
    """Whether ``op`` moves replicas from broker to broker; work of other providers can go on, too."""
    return type_of(op).completion is MOVES


class MoveTracker:
    """How far the moves of one run are, or those of others that are in their way."""

    def __init__(self, movement: Movement) -> None:
        """Tell what ``movement`` sees."""
        self._movement = movement

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """See `WorkTracker`; what only tidies up after moves is not worth telling."""
        awaiting = [op for op in awaiting if not type_of(op).is_cleanup]
        what = "Moving replicas" if working else "Waiting for moves that are under way"
        named = [TopicPartition.parse(p) for op in working or awaiting for p in find_partitions(op)]
        return WorkProgress(what, self._movement.look(live.get(KafkaState), named)) if named else None


def _find_moving(op: Operation, live: KafkaState) -> tuple[str, ...]:
    return tuple(p for p in find_partitions(op) if TopicPartition.parse(p) in live.moves)


def _count_copies(operations: Iterable[Operation]) -> dict[TopicPartition, int]:
    """How many copies are made of each partition that is moved."""
    return {
        TopicPartition.parse(name): len(set(after) - set(get_replicas_before(op, name)))
        for op in operations
        if moves_replicas(op)
        for name, after in get_targets(op).items()
    }
