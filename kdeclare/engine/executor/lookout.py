"""Watching what goes on in the cluster: moves until they are over, and steps that wait for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kdeclare.core.clock import Clock
from kdeclare.core.faults import Fault
from kdeclare.core.operations import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.progress import Progress
from kdeclare.core.registry import type_of
from kdeclare.core.run import OperationResult, Status
from kdeclare.engine.executor.attempt import done
from kdeclare.engine.observation import connections_to, kafka_of, observe, select_all
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import pending
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.movement import Movement, told, waiting
from kdeclare.providers.kafka.reassignment.pace import from_args
from kdeclare.providers.kafka.visibility import VISIBILITY_TIMEOUT_S

GOES_ON = "The move goes on in the cluster; kdeclare status shows it."
LATER = "The move goes on in the cluster; kdeclare status --watch, or the next apply, does this afterwards."

_PATIENCE = 10  # metadata may lag behind the controller
_NAMED = 3
_SLOWER_AFTER_S = 10.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run goes about its work.

    wait: whether to stay until moves are over. move_timeout_s: how long at most, for one operation
    whose own pace says nothing else. batch: operations a request. poll_s: seconds between two looks at
    moves in flight. follow_timeout_s: how long what follows one after the other (Connect workers) is given
    for it. visibility_timeout_s: how long brokers are given to show topics that exist.
    """

    fail_fast: bool = False
    wait: bool = True
    batch: int = 500
    workers: int = 3
    move_timeout_s: float = 3600.0
    poll_s: float = 0.5
    follow_timeout_s: float = 30.0
    visibility_timeout_s: float = VISIBILITY_TIMEOUT_S


class Lookout:
    """What a run waits for in the cluster. Owned by the scheduler's thread."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        options: RunOptions,
        progress: Progress,
        operations: Iterable[Operation],
    ) -> None:
        """Nothing is asked before `look`. operations: all of the run."""
        self._cluster = cluster
        self._clock = clock
        self._options = options
        self._progress = progress
        self._movement = Movement(cluster, clock, _copies(operations))
        self._moving: dict[str, tuple[Operation, float]] = {}
        self._held: dict[str, tuple[Operation, float]] = {}
        self._impatient: set[str] = set()
        self._free: set[str] = set()
        self._unlike: dict[str, int] = {}
        self._live: KafkaState | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is waited for."""
        return not self._moving and not self._held

    def follow(self, operations: Iterable[Operation]) -> None:
        """Watch moves that have begun."""
        now = self._clock.monotonic()
        self._moving |= {op.id: (op, now) for op in operations}

    def holds(self, op: Operation, followed: Sequence[Status]) -> bool:
        """Whether an operation that is due has to wait: for its pause, or for moves of its partitions.

        followed: how those ended that it comes after; nothing waits for a move that was given up on.
        """
        pause = float(op.args.get("pause_s") or 0)
        if op.id in self._free or not (type_of(op).awaits_others or pause):
            return False
        if any(status in (Status.STARTED, Status.UNKNOWN) for status in followed):
            self._impatient.add(op.id)
        _, since = self._held.setdefault(op.id, (op, self._clock.monotonic()))
        if type_of(op).awaits_others or self._clock.monotonic() - since < pause:
            return True
        del self._held[op.id]
        return False

    def drop(self, ids: Iterable[str]) -> None:
        """These are waited for no longer."""
        for id_ in ids:
            self._held.pop(id_, None)

    def look(self, *, give_up: bool) -> list[OperationResult]:
        """What is over, or waited for no longer. give_up: do not wait any more."""
        if self.is_idle:
            return []
        ended: list[OperationResult] = []
        if give_up:
            ended += [_started(op) for op, _ in self._moving.values()]
            ended += [_no_turn(op) for op, _ in self._held.values() if not type_of(op).awaits_others]
        self._forget(ended)
        waits = [op for op, _ in self._held.values() if type_of(op).awaits_others]
        operations = [*(op for op, _ in self._moving.values()), *waits]
        if not operations:
            return ended
        try:
            live = observe(connections_to(self._cluster), select_all(operations))
        except Fault:
            live = None  # a broker may be gone for a while; the time-outs are what bounds this
        self._live = kafka_of(live) if live else self._live
        if live is not None:
            ended += self._over(live)
            self._let_go(kafka_of(live))
        ended += self._overdue(give_up=give_up)
        self._forget(ended)
        return ended

    def pause(self) -> None:
        """Wait for the next look; less often where it takes long."""
        if not self.is_idle:
            since = max(since for _, since in [*self._moving.values(), *self._held.values()])
            long = self._clock.monotonic() - since > _SLOWER_AFTER_S
            self._clock.sleep(self._options.poll_s * (4 if long else 1))

    def _over(self, live: LiveState) -> list[OperationResult]:
        """The moves that have ended, well or not."""
        ended: list[OperationResult] = []
        for op, _ in self._moving.values():
            if pending(op, kafka_of(live)):
                continue
            verb = type_of(op)
            if verb.view(op, live) == verb.expected_state(op):
                ended.append(done(op))
            elif self._unlike.setdefault(op.id, 0) >= _PATIENCE:
                ended.append(_overridden(op))
            else:
                self._unlike[op.id] += 1
        self._tell(kafka_of(live))
        return ended

    def _tell(self, live: KafkaState) -> None:
        """How far it is: one's own moves, or those of others that are in the way."""
        if self._moving:
            what, operations = "Moving replicas", [op for op, _ in self._moving.values()]
        else:
            what = "Waiting for moves that are under way"
            operations = [op for op, _ in self._held.values() if not type_of(op).is_cleanup]
        named = [TopicPartition.parse(p) for op in operations for p in op.args["partitions"]]
        if named:
            how_far = self._movement.look(live, named)
            self._progress(what, how_far.partitions, how_far.partitions_total, how_far)

    def _let_go(self, live: KafkaState) -> None:
        """Steps whose partitions are no longer being moved may begin."""
        for id_, (op, _) in list(self._held.items()):
            if type_of(op).awaits_others and not pending(op, live):
                self._free.add(id_)
                del self._held[id_]

    def _overdue(self, *, give_up: bool) -> list[OperationResult]:
        now = self._clock.monotonic()
        result = []
        for op, since in self._moving.values():
            limit = self._limit(op)
            if now - since > limit:
                result.append(_timed_out(op, limit, self._live))
        for op, since in self._held.values():
            if not type_of(op).awaits_others:
                continue
            if give_up or op.id in self._impatient:
                why = LATER if type_of(op).is_cleanup else GOES_ON
                result.append(OperationResult(op.id, Status.STARTED, None, why))
            elif now - since > self._limit(op):
                result.append(_timed_out(op, self._limit(op), self._live))
        return result

    def _limit(self, op: Operation) -> float:
        own = from_args(op.args).timeout_s
        return self._options.move_timeout_s if own is None else own

    def _forget(self, results: Iterable[OperationResult]) -> None:
        for result in results:
            self._moving.pop(result.id, None)
            self._held.pop(result.id, None)


def _copies(operations: Iterable[Operation]) -> dict[TopicPartition, int]:
    """How many copies are made of each partition that is moved."""
    return {
        TopicPartition.parse(name): len(set(after) - set(op.expect.get(name) or ()))
        for op in operations
        if type_of(op).goes_on
        for name, after in op.args["partitions"].items()
    }


def _started(op: Operation) -> OperationResult:
    return OperationResult(op.id, Status.STARTED, None, GOES_ON)


def _no_turn(op: Operation) -> OperationResult:
    """It would have to wait for its pause."""
    return OperationResult(op.id, Status.SKIPPED, None, "Its turn comes with the next apply.")


def _timed_out(op: Operation, limit_s: float, live: KafkaState | None) -> OperationResult:
    """It is left to the cluster; who is waited for is named."""
    open_ = [TopicPartition.parse(p) for p in pending(op, live)] if live else []
    named = "; ".join(told(waiting(live, p)) for p in open_[:_NAMED]) if live else ""
    more = f", and {len(open_) - _NAMED} more partitions" if len(open_) > _NAMED else ""
    text = f"Still moving after {limit_s:g} s: {named or 'the brokers do not answer'}{more}. {GOES_ON}"
    return OperationResult(op.id, Status.STARTED, "move-timeout", text)


def _overridden(op: Operation) -> OperationResult:
    message = "The move ended, but the replicas are not the ones asked for: someone cancelled or changed it."
    return OperationResult(op.id, Status.FAILED, "move-overridden", message)
