"""Watching what goes on in the systems: work until it is over, and steps that wait for it."""

from collections.abc import Iterable, Sequence

from kdeclare.core.clock import Clock
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.collector import VISIBILITY_TIMEOUT_S
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import Completion, WorkTracker
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import OperationResult, Status
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import type_of
from kdeclare.engine.executor.attempt import done
from kdeclare.engine.observation import observe, select_all

_PATIENCE = 10  # looks: metadata may lag behind the controller
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


class ProgressTracker:
    """What a run waits for in the systems. Owned by the scheduler's thread."""

    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        options: RunOptions,
        progress: Progress,
        operations: Iterable[Operation],
    ) -> None:
        """Nothing is asked before `look`. operations: all of the run."""
        self._connections = connections
        self._clock = clock
        self._options = options
        self._progress = progress
        self._operations = tuple(operations)
        self._trackers: dict[Completion, WorkTracker] = {}
        self._working: dict[str, tuple[Operation, float]] = {}
        self._held: dict[str, tuple[Operation, float]] = {}
        self._impatient: set[str] = set()
        self._free: set[str] = set()
        self._unlike: dict[str, int] = {}
        self._live: LiveState | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is waited for."""
        return not self._working and not self._held

    def follow(self, operations: Iterable[Operation]) -> None:
        """Watch work that has begun."""
        now = self._clock.monotonic()
        self._working |= {op.id: (op, now) for op in operations}

    def holds(self, op: Operation, followed: Sequence[Status]) -> bool:
        """Whether an operation that is due has to wait: for its pause, or for work on its objects.

        followed: how those ended that it comes after; nothing waits for work that was given up on.
        """
        pause = type_of(op).find_pause_s(op)
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
            ended += [leave(op) for op, _ in self._working.values()]
            ended += [_no_turn(op) for op, _ in self._held.values() if not type_of(op).awaits_others]
        self._forget(ended)
        waits = [op for op, _ in self._held.values() if type_of(op).awaits_others]
        operations = [*(op for op, _ in self._working.values()), *waits]
        if not operations:
            return ended
        try:
            live = observe(self._connections, select_all(operations))
        except Fault:
            live = None  # a member may be gone for a while; the time-outs are what bounds this
        if live is not None:
            self._live = live
            ended += self._over(live)
            self._let_go(live)
        ended += self._overdue(give_up=give_up)
        self._forget(ended)
        return ended

    def pause(self) -> None:
        """Wait for the next look; less often where it takes long."""
        if not self.is_idle:
            since = max(since for _, since in [*self._working.values(), *self._held.values()])
            long = self._clock.monotonic() - since > _SLOWER_AFTER_S
            self._clock.sleep(self._options.poll_s * (4 if long else 1))

    def _over(self, live: LiveState) -> list[OperationResult]:
        """The work that has ended, well or not."""
        ended: list[OperationResult] = []
        for op, _ in self._working.values():
            verb = type_of(op)
            if verb.completion is None or verb.completion.is_ongoing(op, live):
                continue
            if verb.view(op, live) == verb.expected_state(op):
                ended.append(done(op))
            elif self._unlike.setdefault(op.id, 0) >= _PATIENCE:
                ended.append(verb.completion.report_other_end(op))
            else:
                self._unlike[op.id] += 1
        self._tell(live)
        return ended

    def _tell(self, live: LiveState) -> None:
        """How far it is: one's own work, or that of others that is in the way."""
        working = [op for op, _ in self._working.values()]
        awaiting = [op for op, _ in self._held.values()]
        for completion in dict.fromkeys(map(_find_completion, (*working, *awaiting))):
            if completion is None:
                continue
            if completion not in self._trackers:
                self._trackers[completion] = completion.start_tracking(
                    self._connections, self._clock, self._operations
                )
            seen = self._trackers[completion].look(
                live,
                [op for op in working if _find_completion(op) is completion],
                [op for op in awaiting if _find_completion(op) is completion],
            )
            if seen is not None:
                self._progress(
                    seen.what, seen.how_far.partitions, seen.how_far.partitions_total, seen.how_far
                )

    def _let_go(self, live: LiveState) -> None:
        """Steps may begin when the work on their objects is over."""
        for id_, (op, _) in list(self._held.items()):
            awaits = type_of(op).awaits
            if awaits is not None and not awaits.is_ongoing(op, live):
                self._free.add(id_)
                del self._held[id_]

    def _overdue(self, *, give_up: bool) -> list[OperationResult]:
        now = self._clock.monotonic()
        result = []
        for op, since in self._working.values():
            result += self._give_up(op, type_of(op).completion, now - since)
        for op, since in self._held.values():
            awaits = type_of(op).awaits
            if awaits is not None and (give_up or op.id in self._impatient):
                result.append(awaits.leave(op))
            else:
                result += self._give_up(op, awaits, now - since)
        return result

    def _give_up(
        self, op: Operation, completion: Completion | None, passed_s: float
    ) -> list[OperationResult]:
        if completion is None:
            return []
        own = completion.find_limit_s(op)
        limit = self._options.move_timeout_s if own is None else own
        return [completion.give_up(op, limit, self._live)] if passed_s > limit else []

    def _forget(self, results: Iterable[OperationResult]) -> None:
        for result in results:
            self._working.pop(result.id, None)
            self._held.pop(result.id, None)


def leave(op: Operation) -> OperationResult:
    """The result of an operation that nobody waits for any longer."""
    completion = _find_completion(op)
    if completion is None:
        return OperationResult(op.id, Status.STARTED, None, "The next apply does this.")
    return completion.leave(op)


def _find_completion(op: Operation) -> Completion | None:
    return type_of(op).completion or type_of(op).awaits


def _no_turn(op: Operation) -> OperationResult:
    """It would have to wait for its pause."""
    return OperationResult(op.id, Status.SKIPPED, None, "Its turn comes with the next apply.")
