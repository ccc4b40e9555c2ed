"""Sending one batch, and finding out what became of it when the answer did not come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from threading import Event

from kdeclare.core.clock import Clock, timestamp_in
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import MADE_CAUSES, Created, Fault, FaultCause, FaultKind, Outcome
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import View
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import UNEXPLAINED
from kdeclare.core.plans.run import NOT_EVERYWHERE, REQUEST_DEADLINE_S, OperationResult, Status
from kdeclare.core.provider.registry import OPERATION_TYPES, type_of
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.executor.expectations import changed_secrets, mismatches, show_value, views
from kdeclare.engine.observation import observe, select_all

OUTCOME_UNCLEAR = "outcome-unclear"

_SENDS = 3
_PATIENCE_S = 5.0
_STEP_S = 0.1
_LONGEST_STEP_S = 1.0

_ALREADY = MADE_CAUSES | {FaultCause.GONE_ALREADY}
"""What a system answers to a request whose first copy took effect."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Runs batches of operations of one type; safe to share among threads.

    follow_timeout_s: how long what follows one after the other is given for it. stop: from when on no longer.
    request_deadline_s: for how long brokers may work on a request that carries no timeout of its own.
    resend: called with operation ids before their request is sent once more. unanswered: the ids of
    operations whose outcome is being looked for; for progress.
    """

    connections: Connections
    secrets: SecretSource
    clock: Clock
    follow_timeout_s: float
    stop: Event
    request_deadline_s: float = REQUEST_DEADLINE_S
    resend: Callable[[Sequence[Operation]], None] = lambda _: None
    unanswered: set[str] = field(default_factory=set)

    def deadline_s(self, verb: str) -> float:
        """For how long brokers may work on a request of this verb once it has been sent."""
        stated = OPERATION_TYPES[verb].find_deadline_s(self.connections)
        return self.request_deadline_s if stated is None else stated

    def run(
        self, operations: Sequence[Operation], temporary: Mapping[str, JsonValue]
    ) -> dict[str, OperationResult]:
        """A result for each operation. Raises nothing that a cluster can cause.

        temporary: by claim, what the run has set for its own sake and could not remove.
        """
        results: dict[str, OperationResult] = {}
        try:
            todo = self._accept(operations, temporary)
            results |= self._changed_since([op for op in todo if op.after])
        except Fault as fault:
            return {op.id: failed(op, fault) for op in operations}
        todo = [op for op in todo if op.id not in results]
        for sends in range(1, _SENDS + 1):
            if not todo:
                break
            if sends > 1:
                self.resend(todo)
            sent_at = self.clock.monotonic()
            answers = self._send(todo)
            unknown = [op for op in todo if _unknown(op, answers[op.id], again=sends > 1)]
            settled = {op.id for op in todo} - {op.id for op in unknown}
            results |= {op.id: _result(op, answers[op.id]) for op in todo if op.id in settled}
            results |= self._overtaken([op for op in todo if op.id in settled], answers)
            repeats = [op for op in unknown if sends < _SENDS and type_of(op).is_repeatable(op)]
            unknown = [op for op in unknown if op not in repeats]
            todo = repeats
            if unknown:
                found = self._settle(unknown, answers, sent_at, last=sends == _SENDS)
                results |= found
                todo = [*repeats, *(op for op in unknown if op.id not in found)]
            if repeats:
                self.clock.sleep(_STEP_S * 2**sends)
        spreading = [
            op for op in operations if type_of(op).propagates and results[op.id].status is Status.DONE
        ]
        return results | self._spread(spreading)

    def _send(self, operations: Sequence[Operation]) -> Mapping[str, Outcome]:
        verb = OPERATION_TYPES[operations[0].verb]
        gone = {op.id: _gone(problem) for op in operations for problem in changed_secrets([op], self.secrets)}
        rest = [op for op in operations if op.id not in gone]
        try:
            sent = verb.execute(self.connections, rest, self.secrets, validate_only=False) if rest else {}
        except Fault as fault:
            sent = dict.fromkeys((op.id for op in rest), fault)
        return {**sent, **gone}

    def _accept(self, operations: Sequence[Operation], temporary: Mapping[str, JsonValue]) -> list[Operation]:
        """The operations, expecting what is there of the run's own making: nobody else has changed that."""
        met = {op.id: claimed for op in operations if (claimed := _find_claimed(op, temporary))}
        now = views(self.connections, [op for op in operations if op.id in met])
        own = {
            id_: {element: value for element, value in claimed.items() if now[id_].get(element) == value}
            for id_, claimed in met.items()
        }
        return [replace(op, expect={**op.expect, **own[op.id]}) if op.id in own else op for op in operations]

    def _changed_since(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        """What needed others is looked at again right before its request; metadata may lag behind them."""
        wrong = self._until(operations, lambda op, now: not mismatches(op, now))
        return {
            op.id: OperationResult(op.id, Status.STALE, "stale", _change_seen(op, now)) for op, now in wrong
        }

    def _overtaken(
        self, operations: Sequence[Operation], answers: Mapping[str, Outcome]
    ) -> dict[str, OperationResult]:
        """What is refused because somebody else has changed the resource right before the request."""
        refused = {op.id: fault for op in operations if isinstance(fault := answers[op.id], Fault)}
        causes = {id_: _cause(op, refused[id_]) for op in operations if (id_ := op.id) in refused}
        suspects = [op for op in operations if causes.get(op.id) in MADE_CAUSES]
        try:
            now = views(self.connections, suspects)
        except Fault:
            return {}
        results = {}
        for op in suspects:
            text = _change_seen(op, now[op.id])
            if text or causes[op.id] is FaultCause.EXISTS:  # the system may not show it yet
                text = text or refused[op.id].message
                results[op.id] = OperationResult(op.id, Status.STALE, "stale", text)
        return results

    def _settle(
        self,
        operations: Sequence[Operation],
        answers: Mapping[str, Outcome],
        sent_at: float,
        *,
        last: bool,
    ) -> dict[str, OperationResult]:
        """What became of requests without an answer; those without an effect are left out, to be sent again.

        A request may take effect for as long as its deadline at the brokers, so nothing else is said before
        that. Sending it again does no harm, so that is not put off. last: it is not sent again.
        """
        self.unanswered.update(op.id for op in operations)
        try:
            return self._until_deadline(operations, answers, sent_at, last=last)
        finally:
            self.unanswered.difference_update(op.id for op in operations)

    def _until_deadline(
        self,
        operations: Sequence[Operation],
        answers: Mapping[str, Outcome],
        sent_at: float,
        *,
        last: bool,
    ) -> dict[str, OperationResult]:
        verb = operations[0].verb
        begun, deadline = self.clock.monotonic(), sent_at + self.deadline_s(verb)
        results: dict[str, OperationResult] = {}
        todo, step = list(operations), _STEP_S
        while True:
            try:
                now = views(self.connections, todo)
            except Fault:
                now = None
            if now is not None:
                results |= {op.id: done(op) for op in todo if took_effect(op, now[op.id])}
                todo = [op for op in todo if op.id not in results]
            at = self.clock.monotonic()
            untouched = [op for op in todo if now is not None and not mismatches(op, now[op.id])]
            if not last and len(untouched) == len(todo) and at - begun >= _PATIENCE_S:
                return results
            if not todo or at >= max(deadline, begun + _PATIENCE_S):
                break
            if self.stop.is_set():
                until = timestamp_in(self.clock, deadline - at)
                return results | {op.id: _on_its_way(op, until) for op in todo}
            self.clock.sleep(step)
            step = min(step * 2, _LONGEST_STEP_S)
        if now is None:
            return results | {op.id: _lost_sight(op, answers[op.id]) for op in todo}
        results |= {op.id: _neither(op, now[op.id]) for op in todo if op not in untouched}
        return results | {op.id: _gave_up(op) for op in untouched} if last else results

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
            live = observe(self.connections, select_all(operations))
        except Fault as fault:
            return {op.id: _not_everywhere(op, [f"nobody can be asked: {fault}"]) for op in operations}
        lagging = ((op, type_of(op).lagging(op, live)) for op in operations)
        return {op.id: _not_everywhere(op, who) for op, who in lagging if who}

    def _until(
        self, operations: Sequence[Operation], good: Callable[[Operation, View], bool]
    ) -> list[tuple[Operation, View]]:
        """Observe until all are good or patience ends; those that are not, with what was seen last."""
        waited, step = 0.0, _STEP_S
        todo = list(operations)
        while True:
            now = views(self.connections, todo)
            todo = [op for op in todo if not good(op, now[op.id])]
            if not todo or waited >= _PATIENCE_S:
                return [(op, now[op.id]) for op in todo]
            self.clock.sleep(step)
            waited, step = waited + step, step * 2


def _find_claimed(op: Operation, temporary: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The elements that an operation expects something of, with what the run has set there itself."""
    if not temporary or not op.after:
        return {}
    claims = type_of(op).claims(op)
    return {e: temporary[claims[e]] for e in op.expect if e in claims and claims[e] in temporary}


def took_effect(op: Operation, now: View) -> bool:
    """Whether the view shows it; it cannot where before and after look alike (a secret)."""
    return now == type_of(op).expected_state(op) and bool(mismatches(op, now))


def done(op: Operation) -> OperationResult:
    """It went well."""
    return OperationResult(op.id, Status.DONE)


def failed(op: Operation, fault: Fault) -> OperationResult:
    """It did not, and the cluster says why."""
    found = type_of(op).explain(op, fault)
    if found.cause is FaultCause.DENIED_BY_POLICY:
        return OperationResult(op.id, Status.DENIED, fault.error, fault.message or UNEXPLAINED)
    message = f"{fault.message}. {found.hint}" if found.hint else fault.message
    return OperationResult(op.id, Status.FAILED, fault.error, message)


def _not_everywhere(op: Operation, who: Sequence[str]) -> OperationResult:
    message = f"It has been done, but not all have followed: {'; '.join(who)}."
    return OperationResult(op.id, Status.FAILED, NOT_EVERYWHERE, message)


def _result(op: Operation, answer: Outcome) -> OperationResult:
    if isinstance(answer, Fault):
        return failed(op, answer)
    created_id = answer.id if isinstance(answer, Created) else ""
    return replace(done(op), created_id=created_id or None)


def _gone(problem: KdeclareError) -> Fault:
    return Fault(problem.diagnostics[0].code, str(problem))


def _unknown(op: Operation, answer: Outcome, *, again: bool) -> bool:
    """Whether only the system can tell what came of it. again: it was sent before, without an answer.

    A later send that did nothing (no connection, a quota) says nothing of the one before it.
    """
    if not isinstance(answer, Fault):
        return False
    if answer.kind is FaultKind.UNKNOWN:
        return True
    return again and (answer.kind is FaultKind.RETRIABLE or _cause(op, answer) in _ALREADY)


def _cause(op: Operation, fault: Fault) -> FaultCause:
    return type_of(op).explain(op, fault).cause


def _neither(op: Operation, now: View) -> OperationResult:
    message = f"The answer did not come, and it is neither as before nor as planned: {_change_seen(op, now)}"
    return OperationResult(op.id, Status.FAILED, OUTCOME_UNCLEAR, message)


def _lost_sight(op: Operation, answer: Outcome) -> OperationResult:
    message = "The answer did not come, and the cluster could not be observed afterwards"
    return OperationResult(
        op.id, Status.UNKNOWN, answer.error if isinstance(answer, Fault) else None, f"{message}: {answer}."
    )


def _on_its_way(op: Operation, until: str) -> OperationResult:
    message = f"No answer came, and the system may still do it until {until}. The next command looks again."
    return OperationResult(op.id, Status.UNKNOWN, None, message)


def _change_seen(op: Operation, now: View) -> str:
    """What is no longer as planned, in words."""
    return "; ".join(
        f"{m.element} was {show_value(m.planned)}, now it is {show_value(m.now)}" for m in mismatches(op, now)
    )


def _gave_up(op: Operation) -> OperationResult:
    message = f"Sent {_SENDS} times, each time without an answer and without an effect."
    return OperationResult(op.id, Status.FAILED, "REQUEST_TIMED_OUT", message)
