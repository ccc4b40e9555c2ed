"""Stepping through a plan's graph: one thread owns graph and journal, a few others send batches."""

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event

from kdeclare.applying.attempt import Attempt, done
from kdeclare.applying.clock import Clock, timestamp
from kdeclare.applying.entries import BeginLine, as_json, end_line
from kdeclare.cluster.port import Fault
from kdeclare.kinds.query import merge
from kdeclare.kinds.verbs.base import batches
from kdeclare.kinds.verbs.reassign import pending
from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.operations import Operation
from kdeclare.model.run import OperationResult, Status
from kdeclare.planning.observe import observe
from kdeclare.planning.preflight import Progress
from kdeclare.state.port import Journal


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run goes about its work.

    wait: whether to stay until moves are over. move_timeout_s: how long at most.
    batch: operations a request. poll_s: seconds between two looks at moves in flight.
    """

    fail_fast: bool = False
    wait: bool = True
    batch: int = 500
    workers: int = 3
    move_timeout_s: float = 3600.0
    poll_s: float = 0.5


Results = dict[str, OperationResult]


class Scheduler:
    """Runs the operations of one plan. ``stop`` set from outside ends it in good order."""

    def __init__(
        self,
        operations: Sequence[Operation],
        attempt: Attempt,
        journal: Journal,
        clock: Clock,
        options: RunOptions,
        progress: Progress,
        stop: Event,
    ) -> None:
        """Nothing is sent before `run`."""
        self._operations = {op.id: op for op in operations}
        self._attempt = attempt
        self._journal = journal
        self._clock = clock
        self._options = options
        self._progress = progress
        self._stop = stop
        self._todo = dict(self._operations)
        self._flying: dict[Future[Results], list[Operation]] = {}
        self._moving: dict[str, float] = {}
        self._unlike: dict[str, int] = {}
        self.results: Results = {}

    def run(self) -> Results:
        """A result for every operation, in the plan's order."""
        pool = ThreadPoolExecutor(self._options.workers, thread_name_prefix="apply")
        try:
            self._step_through(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # a request that hangs must not hold us up
            raise
        pool.shutdown()
        rest = [OperationResult(id_, Status.INTERRUPTED) for id_ in self._todo]
        self.results |= {result.id: result for result in rest}
        return {id_: self.results[id_] for id_ in self._operations}

    def _step_through(self, pool: ThreadPoolExecutor) -> None:
        while True:
            self._launch(pool)
            if not self._flying and not self._moving:
                return
            self._land()
            self._look_at_moves()

    @property
    def _stopping(self) -> bool:
        failed = any(r.status is Status.FAILED for r in self.results.values())
        return self._stop.is_set() or (self._options.fail_fast and failed)

    def _launch(self, pool: ThreadPoolExecutor) -> None:
        if self._stopping:
            return
        ready: dict[str, list[Operation]] = {}
        for op in self._todo.values():
            if all(self._ended_well(need) for need in op.needs):
                ready.setdefault(op.verb, []).append(op)
        for verb, operations in ready.items():
            # what destroys looks for records first, and must not wait for brokers to follow an earlier batch
            size = len(operations) if VERBS[verb].destroys else self._options.batch
            for batch in batches(VERBS[verb], operations, size):
                ids = [op.id for op in batch]
                self._journal.append(as_json(BeginLine(at=timestamp(self._clock), ids=ids)))
                for op in batch:
                    del self._todo[op.id]
                self._flying[pool.submit(self._attempt.run, batch)] = batch

    def _ended_well(self, need: str) -> bool:
        result = self.results.get(need)
        return result is not None and result.status is Status.DONE

    def _land(self) -> None:
        if not self._flying:
            return
        # a bounded wait, so that a Ctrl-C is seen while a request hangs
        landed, _ = wait(self._flying, timeout=self._options.poll_s, return_when=FIRST_COMPLETED)
        for future in landed:
            batch = self._flying.pop(future)
            results = future.result()
            moving = [op for op in batch if VERBS[op.verb].moves and results[op.id].status is Status.DONE]
            self._moving |= dict.fromkeys((op.id for op in moving), self._clock.monotonic())
            self._end([r for r in results.values() if r.id not in self._moving])

    def _look_at_moves(self) -> None:
        if not self._moving:
            return
        if not self._options.wait or self._stop.is_set():
            why = "The move goes on in the cluster; kdeclare status shows it."
            self._end([OperationResult(id_, Status.STARTED, None, why) for id_ in self._moving])
            return
        try:
            ended = self._ended_moves()
        except Fault:
            ended = []  # a broker may be gone for a while; the time-out below is what bounds this
        self._end(ended or self._overdue())
        if self._moving and not self._flying:
            self._clock.sleep(self._options.poll_s)

    def _ended_moves(self) -> list[OperationResult]:
        operations = [self._operations[id_] for id_ in self._moving]
        live = observe(self._attempt.cluster, merge(VERBS[op.verb].query(op) for op in operations))
        ended: list[OperationResult] = []
        left = 0
        for op in operations:
            open_ = pending(op, live)
            left += len(open_)
            if not open_:
                verb = VERBS[op.verb]
                now = verb.view(op, live)
                if now == verb.after(op):
                    ended.append(done(op))
                elif self._unlike.setdefault(op.id, 0) >= 10:
                    ended.append(_overridden(op))
                else:
                    self._unlike[op.id] += 1  # metadata may lag behind the controller
        if left:
            self._progress("Moving replicas, partitions left", left, 0)
        return ended

    def _overdue(self) -> list[OperationResult]:
        limit = self._options.move_timeout_s
        now = self._clock.monotonic()
        return [
            OperationResult(
                id_,
                Status.STARTED,
                "move-timeout",
                f"Still moving after {limit:.0f} s; it goes on in the cluster, kdeclare status shows it.",
            )
            for id_, since in self._moving.items()
            if now - since > limit
        ]

    def _end(self, results: list[OperationResult]) -> None:
        if not results:
            return
        skipped: list[OperationResult] = []
        for result in results:
            self._moving.pop(result.id, None)
            self.results[result.id] = result
            if result.status is not Status.DONE:
                skipped += self._skip_dependents(result)
        self._journal.append(as_json(end_line(timestamp(self._clock), [*results, *skipped])))
        self._progress("Applying", len(self.results), len(self._operations))

    def _skip_dependents(self, of: OperationResult) -> list[OperationResult]:
        """Everything that needs it, however far; the first cause is the one that is named."""
        skipped: list[OperationResult] = []
        causes = {of.id}
        for op in list(self._todo.values()):
            if causes & op.needs.keys():
                causes.add(op.id)
                result = OperationResult(op.id, Status.SKIPPED, None, f"It needs {of.id}.", of.id)
                del self._todo[op.id]
                self.results[op.id] = result
                skipped.append(result)
        return skipped


def _overridden(op: Operation) -> OperationResult:
    message = "The move ended, but the replicas are not the ones asked for: someone cancelled or changed it."
    return OperationResult(op.id, Status.FAILED, "move-overridden", message)
