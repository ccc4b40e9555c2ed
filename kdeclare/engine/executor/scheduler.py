"""Run the operations of a plan in order of their dependencies.

One thread owns the graph and the journal. Worker threads send the batches.
"""

import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event, Lock

from kdeclare.core.clock import Clock, format_now, format_time_in
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import batch_operations
from kdeclare.core.plans.run import OperationResult, Status
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import OPERATION_TYPES, get_operation_type
from kdeclare.engine.executor.attempt import Attempt
from kdeclare.engine.executor.entries import BeginLine, JournalLine, as_json, build_end_line
from kdeclare.engine.executor.progress_tracker import ProgressTracker, RunOptions
from kdeclare.engine.state.port import Journal

Results = dict[str, OperationResult]

NOT_BEGUN = (Status.SKIPPED, Status.INTERRUPTED, Status.STALE)
"""The statuses of operations that did not begin."""


UNANSWERED = "Waiting to see whether unanswered requests take effect"


class Scheduler:
    """Runs the operations of one plan. The run ends gracefully when the caller sets ``stop``."""

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
        """Prepare to run ``operations``. No request is sent before `run` is called."""
        self._operations = {op.id: op for op in operations}
        self._attempt = replace(attempt, resend=self._begin)
        self._journal = journal
        self._journal_lock = Lock()
        self._clock = clock
        self._options = options
        self._progress = progress
        self._stop = stop
        self._todo = dict(self._operations)
        self._position = {id_: number for number, id_ in enumerate(self._operations)}
        self._dependents: dict[str, list[Operation]] = {}
        for op in operations:
            for id_ in op.after:
                self._dependents.setdefault(id_, []).append(op)
        # Check only operations that might be ready. Checking all of them in every step would take time
        # quadratic in their number.
        self._candidates = set(self._operations)
        self._has_failed = False
        # Batches begin only when a worker is free. A queue in the pool could not be stopped, and the journal
        # would say that its requests may have been sent.
        self._queue: deque[list[Operation]] = deque()
        self._in_flight: dict[Future[Results], list[Operation]] = {}
        self._tracker = ProgressTracker(attempt.connections, clock, options, progress, operations)
        self._looked_at_s = -math.inf
        self._temporary: dict[str, JsonValue] = {}  # the values that the run must still remove, by claim
        self.results: Results = {}

    def run(self) -> Results:
        """Run the operations, and return a result for each operation, in the order of the plan."""
        pool = ThreadPoolExecutor(self._options.workers, thread_name_prefix="apply")
        try:
            self._step_through(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # do not wait for a request that hangs
            raise
        pool.shutdown()
        self._drop_remaining(list(self._todo))
        return {id_: self.results[id_] for id_ in self._operations}

    def list_unanswered(self) -> list[str]:
        """Return the ids of the operations that were passed to a worker thread and have no result yet."""
        return [id_ for id_ in self._operations if id_ not in self._todo and id_ not in self.results]

    def _step_through(self, pool: ThreadPoolExecutor) -> None:
        while True:
            self._launch_due(pool)
            if not self._in_flight and self._tracker.is_idle:
                return
            self._collect_finished()
            if self._is_look_due():
                self._looked_at_s = self._clock.monotonic()
                give_up = self._stop.is_set() or not self._options.wait
                self._record_results(self._tracker.look(give_up=give_up))
            if not self._in_flight and not self._queue:
                self._tracker.pause()

    def _is_look_due(self) -> bool:
        """Whether to observe ongoing work now.

        While requests are sent, the work is observed only at intervals: a run can have thousands of batches,
        and each observation can take longer than a request.
        """
        if not self._in_flight and not self._queue:
            return True
        return self._clock.monotonic() - self._looked_at_s >= self._options.poll_s

    @property
    def _is_stopping(self) -> bool:
        return self._stop.is_set() or (self._options.fail_fast and self._has_failed)

    def _launch_due(self, pool: ThreadPoolExecutor) -> None:
        if self._is_stopping:
            self._drop_remaining(
                [op.id for op in self._todo.values() if not get_operation_type(op).is_cleanup]
            )
        ready: dict[str, list[Operation]] = {}
        # Use a new set: iterating over a set that once had thousands of elements is slow even if few remain.
        due_ids = [id_ for id_ in self._candidates if id_ in self._todo]
        self._candidates = set()
        for id_ in sorted(due_ids, key=self._position.__getitem__):
            op = self._todo[id_]
            if not self._is_due(op):
                continue  # becomes a candidate again when its predecessors have ended
            if self._tracker.holds(op, self._list_predecessor_statuses(op)):
                self._candidates.add(id_)
            else:
                ready.setdefault(op.verb, []).append(op)
        for verb, operations in ready.items():
            # All deletions form one batch. A second batch would first check for records, and this check would
            # wait until brokers show the deletions of the first batch.
            size = len(operations) if OPERATION_TYPES[verb].deletes else self._options.batch
            self._queue.extend(batch_operations(OPERATION_TYPES[verb], operations, size))
        while self._queue and len(self._in_flight) < self._options.workers:
            batch = [op for op in self._queue.popleft() if op.id in self._todo]  # without dropped operations
            if not batch:
                continue
            self._begin(batch)
            for op in batch:
                del self._todo[op.id]
            self._in_flight[pool.submit(self._attempt.run, batch, dict(self._temporary))] = batch

    def _begin(self, batch: Sequence[Operation]) -> None:
        """Record in the journal that a request is about to be sent. Worker threads call this method, too."""
        deadline = format_time_in(self._clock, self._attempt.deadline_s(batch[0].verb))
        ids = [op.id for op in batch]
        self._append_line(BeginLine(at=format_now(self._clock), ids=ids, deadline=deadline))

    def _append_line(self, line: JournalLine) -> None:
        with self._journal_lock:
            self._journal.append(as_json(line))

    def _is_due(self, op: Operation) -> bool:
        """Whether an operation can start. A cleanup starts only if there is something to clean up."""
        if any(self._find_status(need) is not Status.DONE for need in op.needs):
            return False
        if any(id_ in self._operations and id_ not in self.results for id_ in op.follows):
            return False
        predecessor_statuses = self._list_predecessor_statuses(op)
        return not (get_operation_type(op).is_cleanup and predecessor_statuses) or any(
            s not in NOT_BEGUN for s in predecessor_statuses
        )

    def _list_predecessor_statuses(self, op: Operation) -> list[Status]:
        return [self.results[id_].status for id_ in op.follows if id_ in self.results]

    def _find_status(self, id_: str) -> Status | None:
        result = self.results.get(id_)
        return result.status if result else None

    def _collect_finished(self) -> None:
        if not self._in_flight:
            return
        # The wait has a limit, so that Ctrl-C is noticed while a request gets no response.
        finished_futures, _ = wait(self._in_flight, timeout=self._options.poll_s, return_when=FIRST_COMPLETED)
        if not finished_futures and self._attempt.unanswered:
            self._progress(UNANSWERED, len(self.results), len(self._operations))
        for future in finished_futures:
            batch = self._in_flight.pop(future)
            results = future.result()
            ongoing_ids = {
                op.id
                for op in batch
                if get_operation_type(op).goes_on and results[op.id].status is Status.DONE
            }
            self._tracker.follow(op for op in batch if op.id in ongoing_ids)
            self._record_results([r for r in results.values() if r.id not in ongoing_ids])

    def _record_results(self, results: Sequence[OperationResult]) -> None:
        if not results:
            return
        skipped: list[OperationResult] = []
        for result in results:
            self._todo.pop(result.id, None)
            self._keep_result(result)
            if result.status is not Status.DONE:
                skipped += self._skip_dependents(result)
        self._append_line(build_end_line(format_now(self._clock), [*results, *skipped]))
        self._progress("Applying", len(self.results), len(self._operations))

    def _keep_result(self, result: OperationResult) -> None:
        self.results[result.id] = result
        self._has_failed = self._has_failed or result.status is Status.FAILED
        self._keep_temporary(self._operations[result.id], result.status)
        self._candidates.update(op.id for op in self._dependents.get(result.id, ()))

    def _keep_temporary(self, op: Operation, status: Status) -> None:
        """Remember the temporary values that an operation sets, until a cleanup removes them.

        The views of later operations contain these values.
        """
        operation_type = get_operation_type(op)
        if operation_type.is_temporary(op) and status not in NOT_BEGUN:
            claims = operation_type.claims(op)
            self._temporary |= {
                claims[e]: v for e, v in operation_type.expected_state(op).items() if e in claims
            }
        elif operation_type.is_cleanup and status is Status.DONE:
            for claim in operation_type.claims(op).values():
                self._temporary.pop(claim, None)

    def _skip_dependents(self, cause_result: OperationResult) -> list[OperationResult]:
        is_ongoing = cause_result.status in (Status.STARTED, Status.UNKNOWN)
        skipped: list[OperationResult] = []
        cause_ids = [cause_result.id]
        while cause_ids:
            cause_id = cause_ids.pop()
            for op in self._dependents.get(cause_id, ()):
                if op.id not in self._todo:
                    continue
                # Operations that wait for ongoing work observe the work themselves.
                is_waiting = (
                    is_ongoing and not get_operation_type(op).awaits_others and cause_id in op.follows
                )
                if is_waiting or cause_id in op.needs:
                    cause_ids.append(op.id)
                    text = (
                        f"This operation waits for {cause_result.id}, which is still in progress."
                        if is_ongoing
                        else f"This operation depends on {cause_result.id}, which did not succeed."
                    )
                    skipped.append(OperationResult(op.id, Status.SKIPPED, None, text, cause_result.id))
                    del self._todo[op.id]
        skipped.sort(key=lambda result: self._position[result.id])
        for result in skipped:
            self._keep_result(result)
        return skipped

    def _drop_remaining(self, ids: Sequence[str]) -> None:
        self._tracker.drop(ids)
        for id_ in ids:
            op = self._todo.pop(id_)
            result = OperationResult(id_, Status.INTERRUPTED)
            if get_operation_type(op).is_cleanup:
                cause = next(iter(op.follows), None)
                result = OperationResult(id_, Status.SKIPPED, None, "There is nothing to clean up.", cause)
            self._keep_result(result)
