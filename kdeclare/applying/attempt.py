"""Sending one batch, and finding out what became of it when the answer did not come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event

from kdeclare.applying.clock import Clock
from kdeclare.applying.expectations import changed_secrets, mismatches, shown, views
from kdeclare.cluster.port import POLICY_VIOLATION, Cluster, Fault, FaultKind, Result
from kdeclare.kinds.query import merge
from kdeclare.kinds.secrets import SecretSource
from kdeclare.kinds.verbs.base import View
from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.diagnostics import KdeclareError
from kdeclare.model.operations import Operation
from kdeclare.model.plan import UNEXPLAINED
from kdeclare.model.run import NOT_EVERYWHERE, OperationResult, Status
from kdeclare.planning.observe import observe

OUTCOME_UNCLEAR = "outcome-unclear"

_SENDS = 3
_PATIENCE_S = 5.0
_STEP_S = 0.1
_LONGEST_STEP_S = 1.0

_ALREADY = frozenset({"TOPIC_ALREADY_EXISTS", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_PARTITIONS"})
"""What Kafka answers to a request whose first copy took effect."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Runs batches of one verb against one cluster; safe to share among threads.

    follow_timeout_s: how long what follows one after the other is given for it. stop: from when on no longer.
    """

    cluster: Cluster
    secrets: SecretSource
    clock: Clock
    follow_timeout_s: float
    stop: Event

    def run(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        """A result for each operation. Raises nothing that a cluster can cause."""
        results: dict[str, OperationResult] = {}
        todo = list(operations)
        try:
            results |= self._changed_since([op for op in todo if op.after])
        except Fault as fault:
            return {op.id: failed(op, fault) for op in operations}
        todo = [op for op in todo if op.id not in results]
        for sends in range(1, _SENDS + 1):
            if not todo:
                break
            answers = self._send(todo)
            unknown = [op for op in todo if _unknown(answers[op.id], again=sends > 1)]
            settled = {op.id for op in todo} - {op.id for op in unknown}
            results |= {op.id: _result(op, answers[op.id]) for op in todo if op.id in settled}
            found = self._settle(unknown, answers)
            results |= found
            todo = [op for op in unknown if op.id not in found]
        results |= {op.id: _gave_up(op) for op in todo}
        spreading = [
            op for op in operations if VERBS[op.verb].spreads and results[op.id].status is Status.DONE
        ]
        return results | self._spread(spreading)

    def _send(self, operations: Sequence[Operation]) -> Mapping[str, Result]:
        verb = VERBS[operations[0].verb]
        gone = {op.id: _gone(problem) for op in operations for problem in changed_secrets([op], self.secrets)}
        rest = [op for op in operations if op.id not in gone]
        try:
            sent = verb.execute(self.cluster, rest, self.secrets, validate_only=False) if rest else {}
        except Fault as fault:
            sent = dict.fromkeys((op.id for op in rest), fault)
        return {**sent, **gone}

    def _changed_since(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        """What needed others is looked at again right before its request; metadata may lag behind them."""
        wrong = self._until(operations, lambda op, now: not mismatches(op, now))
        return {
            op.id: OperationResult(op.id, Status.STALE, "stale", _change_seen(op, now)) for op, now in wrong
        }

    def _settle(
        self, operations: Sequence[Operation], answers: Mapping[str, Result]
    ) -> dict[str, OperationResult]:
        """Done, or something else; those that were not done are left out, to be sent again."""
        results: dict[str, OperationResult] = {op.id: done(op) for op in operations}
        try:
            rest = self._until(operations, took_effect)
        except Fault:
            return {op.id: _lost_sight(op, answers[op.id]) for op in operations}
        for op, now in rest:
            if mismatches(op, now):
                results[op.id] = _neither(op, now)
            else:
                del results[op.id]
        return results

    def _spread(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        """Wait until all have followed; a result for each operation of which some have not."""
        until, step = self.clock.monotonic() + self.follow_timeout_s, _STEP_S
        todo = list(operations)
        found: dict[str, OperationResult] = {}
        while todo:
            found = self._lagging(todo)
            todo = [op for op in todo if op.id in found]
            if not todo or self.stop.is_set() or self.clock.monotonic() >= until:
                break
            self.clock.sleep(step)
            step = min(step * 2, _LONGEST_STEP_S)
        return found

    def _lagging(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        try:
            live = observe(self.cluster, merge(VERBS[op.verb].query(op) for op in operations))
        except Fault as fault:
            return {op.id: _not_everywhere(op, [f"nobody can be asked: {fault}"]) for op in operations}
        lagging = ((op, VERBS[op.verb].lagging(op, live)) for op in operations)
        return {op.id: _not_everywhere(op, who) for op, who in lagging if who}

    def _until(
        self, operations: Sequence[Operation], good: Callable[[Operation, View], bool]
    ) -> list[tuple[Operation, View]]:
        """Observe until all are good or patience ends; those that are not, with what was seen last."""
        waited, step = 0.0, _STEP_S
        todo = list(operations)
        while True:
            now = views(self.cluster, todo)
            todo = [op for op in todo if not good(op, now[op.id])]
            if not todo or waited >= _PATIENCE_S:
                return [(op, now[op.id]) for op in todo]
            self.clock.sleep(step)
            waited, step = waited + step, step * 2


def took_effect(op: Operation, now: View) -> bool:
    """Whether the view shows it; it cannot where before and after look alike (a secret)."""
    return now == VERBS[op.verb].after(op) and bool(mismatches(op, now))


def done(op: Operation) -> OperationResult:
    """It went well."""
    return OperationResult(op.id, Status.DONE)


def failed(op: Operation, fault: Fault) -> OperationResult:
    """It did not, and the cluster says why."""
    if fault.error == POLICY_VIOLATION:
        return OperationResult(op.id, Status.DENIED, fault.error, fault.message or UNEXPLAINED)
    return OperationResult(op.id, Status.FAILED, fault.error, fault.message)


def _not_everywhere(op: Operation, who: Sequence[str]) -> OperationResult:
    message = f"It has been done, but not all have followed: {'; '.join(who)}."
    return OperationResult(op.id, Status.FAILED, NOT_EVERYWHERE, message)


def _result(op: Operation, answer: Result) -> OperationResult:
    return done(op) if answer is None else failed(op, answer)


def _gone(problem: KdeclareError) -> Fault:
    return Fault(problem.diagnostics[0].code, str(problem))


def _unknown(answer: Result, *, again: bool) -> bool:
    if answer is None:
        return False
    return answer.kind is FaultKind.UNKNOWN or (again and answer.error in _ALREADY)


def _neither(op: Operation, now: View) -> OperationResult:
    message = f"The answer did not come, and it is neither as before nor as planned: {_change_seen(op, now)}"
    return OperationResult(op.id, Status.FAILED, OUTCOME_UNCLEAR, message)


def _lost_sight(op: Operation, answer: Result) -> OperationResult:
    message = "The answer did not come, and the cluster could not be observed afterwards"
    return OperationResult(op.id, Status.UNKNOWN, answer.error if answer else None, f"{message}: {answer}.")


def _change_seen(op: Operation, now: View) -> str:
    """What is no longer as planned, in words."""
    return "; ".join(
        f"{m.element} was {shown(m.planned)}, now it is {shown(m.now)}" for m in mismatches(op, now)
    )


def _gave_up(op: Operation) -> OperationResult:
    message = f"Sent {_SENDS} times, each time without an answer and without an effect."
    return OperationResult(op.id, Status.FAILED, "REQUEST_TIMED_OUT", message)
