"""Observe systems during a run: track ongoing work, and delay operations that must wait for the work."""

from collections.abc import Iterable, Sequence

from kdeclare.core.clock import Clock
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import VISIBILITY_TIMEOUT_S
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.completion import Completion, WorkTracker
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import OperationResult, Status
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.executor.attempt import build_done_result
from kdeclare.engine.observation import observe, select_all

_MAX_MISMATCHES = 10  # number of observations, because metadata may lag behind the controller
_SLOWER_AFTER_S = 10.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run. All times are in seconds.

    stop_on_denial: whether to refuse the whole plan if a policy or a guard denies a change.
    wait: whether to wait until reassignments end. batch: the number of operations per request.
    move_timeout_s: the maximum duration of one operation, unless the operation computes its own limit (for
        example, from its throttle).
    poll_s: the time between observations of ongoing work.
    follow_timeout_s: how long to wait for changes that reach the members one by one (Connect workers).
    visibility_timeout_s: how long to wait until brokers show topics that exist.
    """

    fail_fast: bool = False
    stop_on_denial: bool = False
    wait: bool = True
    batch: int = 500
    workers: int = 3
    move_timeout_s: float = 3600.0
    poll_s: float = 0.5
    follow_timeout_s: float = 30.0
    visibility_timeout_s: float = VISIBILITY_TIMEOUT_S


class ProgressTracker:
    """Tracks the ongoing work that a run waits for. Used only by the scheduler's thread."""

    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        options: RunOptions,
        progress: Progress,
        operations: Iterable[Operation],
    ) -> None:
        """Prepare to track the work of a run. operations: all operations of the run.

        No request is sent before `look` is called.
        """
        self._connections = connections
        self._clock = clock
        self._options = options
        self._progress = progress
        self._operations = tuple(operations)
        self._trackers: dict[Completion, WorkTracker] = {}
        self._working: dict[str, tuple[Operation, float]] = {}
        self._waiting: dict[str, tuple[Operation, float]] = {}
        self._not_awaited: set[str] = set()
        self._released: set[str] = set()
        self._mismatch_counts: dict[str, int] = {}
        self._ends: dict[str, tuple[OperationResult, float]] = {}  # with the time when first seen
        self._live: LiveState | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is no work to wait for."""
        return not self._working and not self._waiting

    def follow(self, operations: Iterable[Operation]) -> None:
        """Start to watch the work that these operations started."""
        now_s = self._clock.monotonic()
        self._working |= {op.id: (op, now_s) for op in operations}

    def holds(self, op: Operation, followed: Sequence[Status]) -> bool:
        """Whether an operation whose predecessors have ended must still wait for a pause or for ongoing work.

        followed: the statuses of the predecessors. If the run stopped waiting for the work of a predecessor,
            this operation does not wait for that work, either.
        """
        operation_type = get_operation_type(op)
        pause = operation_type.find_pause_s(op)
        if op.id in self._released or not (operation_type.awaits_others or pause):
            return False
        if any(status in (Status.STARTED, Status.UNKNOWN) for status in followed):
            self._not_awaited.add(op.id)
        _, since = self._waiting.setdefault(op.id, (op, self._clock.monotonic()))
        if operation_type.awaits_others or self._clock.monotonic() - since < pause:
            return True
        del self._waiting[op.id]
        return False

    def drop(self, ids: Iterable[str]) -> None:
        """Stop waiting for these operations."""
        for id_ in ids:
            self._waiting.pop(id_, None)

    def look(self, *, give_up: bool) -> list[OperationResult]:
        """Return results for work that has ended and for work that the run no longer waits for.

        give_up: whether to stop waiting now.
        """
        if self.is_idle:
            return []
        ended: list[OperationResult] = []
        if give_up:
            ended += [build_started_result(op) for op, _ in self._working.values()]
            ended += [
                _build_skipped_result(op)
                for op, _ in self._waiting.values()
                if not get_operation_type(op).awaits_others
            ]
        self._remove_ended(ended)
        waits = [op for op, _ in self._waiting.values() if get_operation_type(op).awaits_others]
        operations = [*(op for op, _ in self._working.values()), *waits]
        if not operations:
            return ended
        try:
            live = observe(self._connections, select_all(operations))
        except Fault:
            live = None  # a member may be unavailable for a while; timeouts limit the wait
        if live is not None:
            self._live = live
            ended += self._find_ended(live)
            self._release_ready(live)
        ended += self._find_overdue(give_up=give_up)
        self._remove_ended(ended)
        return ended

    def pause(self) -> None:
        """Wait until the next observation.

        If the work takes a long time, observations become less frequent.
        """
        if not self.is_idle:
            since = max(since for _, since in [*self._working.values(), *self._waiting.values()])
            is_long = self._clock.monotonic() - since > _SLOWER_AFTER_S
            self._clock.sleep(self._options.poll_s * (4 if is_long else 1))

    def _find_ended(self, live: LiveState) -> list[OperationResult]:
        ended: list[OperationResult] = []
        for op, _ in self._working.values():
            completion = get_operation_type(op).completion
            if completion is None:
                continue
            result = completion.find_failure(op, live)
            has_failed = result is not None
            if result is None and not completion.is_ongoing(op, live):
                result = self._build_ended_result(op, completion, live)
            if self._has_settled(op, result, completion.find_settle_s(op, has_failed=has_failed)):
                assert result is not None
                ended.append(result)
        self._report_progress(live)
        return ended

    def _build_ended_result(
        self, op: Operation, completion: Completion, live: LiveState
    ) -> OperationResult | None:
        """Return the result of an operation whose work has ended; None if its view can still change."""
        if get_operation_type(op).compute_view(op, live) == get_operation_type(op).expected_state(op):
            return build_done_result(op)
        if self._mismatch_counts.setdefault(op.id, 0) >= _MAX_MISMATCHES:
            return completion.report_overridden(op)
        self._mismatch_counts[op.id] += 1
        return None

    def _has_settled(self, op: Operation, result: OperationResult | None, settle_s: float) -> bool:
        """Whether the system has shown the same result of the work for at least ``settle_s`` seconds."""
        if result is None:
            self._ends.pop(op.id, None)
            return False
        now_s = self._clock.monotonic()
        shown_result, since_s = self._ends.get(op.id, (result, now_s))
        if (shown_result.status, shown_result.error) != (result.status, result.error):
            since_s = now_s
        self._ends[op.id] = (result, since_s)
        return now_s - since_s >= settle_s

    def _report_progress(self, live: LiveState) -> None:
        working = [op for op, _ in self._working.values()]
        awaiting = [op for op, _ in self._waiting.values()]
        for completion in dict.fromkeys(map(_find_completion, (*working, *awaiting))):
            if completion is None:
                continue
            if completion not in self._trackers:
                self._trackers[completion] = completion.start_tracking(
                    self._connections, self._clock, self._operations
                )
            work_progress = self._trackers[completion].look(
                live,
                [op for op in working if _find_completion(op) is completion],
                [op for op in awaiting if _find_completion(op) is completion],
            )
            if work_progress is not None:
                self._progress(
                    work_progress.what,
                    work_progress.how_far.partitions,
                    work_progress.how_far.partitions_total,
                    work_progress.how_far,
                )

    def _release_ready(self, live: LiveState) -> None:
        for id_, (op, _) in list(self._waiting.items()):
            awaited_completion = get_operation_type(op).awaits
            if awaited_completion is not None and not awaited_completion.is_ongoing(op, live):
                self._released.add(id_)
                del self._waiting[id_]

    def _find_overdue(self, *, give_up: bool) -> list[OperationResult]:
        now_s = self._clock.monotonic()
        results = []
        for op, since in self._working.values():
            results += self._build_timeout_results(op, get_operation_type(op).completion, now_s - since)
        for op, since in self._waiting.values():
            awaited_completion = get_operation_type(op).awaits
            if awaited_completion is not None and (give_up or op.id in self._not_awaited):
                results.append(awaited_completion.report_started(op))
            else:
                results += self._build_timeout_results(op, awaited_completion, now_s - since)
        return results

    def _build_timeout_results(
        self, op: Operation, completion: Completion | None, passed_s: float
    ) -> list[OperationResult]:
        if completion is None:
            return []
        own_limit_s = completion.find_limit_s(op)
        limit_s = self._options.move_timeout_s if own_limit_s is None else own_limit_s
        return [completion.report_timeout(op, limit_s, self._live)] if passed_s > limit_s else []

    def _remove_ended(self, results: Iterable[OperationResult]) -> None:
        for result in results:
            self._working.pop(result.id, None)
            self._waiting.pop(result.id, None)


def build_started_result(op: Operation) -> OperationResult:
    """Return the result of an operation whose ongoing work the run does not wait for."""
    completion = _find_completion(op)
    if completion is None:
        return OperationResult(op.id, Status.STARTED, None, "The next apply completes this operation.")
    return completion.report_started(op)


def _find_completion(op: Operation) -> Completion | None:
    return get_operation_type(op).completion or get_operation_type(op).awaits


def _build_skipped_result(op: Operation) -> OperationResult:
    """Return the result of an operation that is skipped because its pause has not ended."""
    return OperationResult(op.id, Status.SKIPPED, None, "The next apply completes this operation.")
