"""When moves are over, and what is said while they are not."""

from collections.abc import Iterable, Sequence

from kdeclare.core.clock import Clock
from kdeclare.core.completion import Completion, WorkProgress
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.registry import type_of
from kdeclare.core.run import OperationResult, Status
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.reassignment.movement import Movement, told, waiting
from kdeclare.providers.kafka.reassignment.operations.arguments import find_pace, find_partitions

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
        """See `core.completion.WorkTracker`; what only tidies up after moves is not worth telling."""
        awaiting = [op for op in awaiting if not type_of(op).is_cleanup]
        what = "Moving replicas" if working else "Waiting for moves that are under way"
        named = [TopicPartition.parse(p) for op in working or awaiting for p in find_partitions(op)]
        return WorkProgress(what, self._movement.look(live.get(KafkaState), named)) if named else None


def _find_moving(op: Operation, live: KafkaState) -> tuple[str, ...]:
    return tuple(p for p in find_partitions(op) if TopicPartition.parse(p) in live.moves)


def _count_copies(operations: Iterable[Operation]) -> dict[TopicPartition, int]:
    """How many copies are made of each partition that is moved."""
    return {
        TopicPartition.parse(name): len(set(after) - set(op.expect.get(name) or ()))
        for op in operations
        if moves_replicas(op)
        for name, after in get_targets(op).items()
    }
