"""Send a batch of operations, and settle the unknown outcome of requests that get no response.

After a crash, the module `recovery` settles the outcomes that are still unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from threading import Event

from kdeclare.core.clock import Clock, format_time_in, generate_pauses
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import VISIBILITY_TIMEOUT_S
from kdeclare.core.live.faults import DONE_CAUSES, CreatedObject, Fault, FaultCause, FaultKind, Outcome
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import View
from kdeclare.core.operations.send_permit import SendCheck, require_permit
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import UNEXPLAINED_DENIAL
from kdeclare.core.plans.run import NOT_PROPAGATED, REQUEST_DEADLINE_S, OperationResult, Status
from kdeclare.core.provider.registry import OPERATION_TYPES, get_operation_type
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.executor.expectations import (
    find_changed_secrets,
    find_mismatches,
    format_value,
    read_views,
)
from kdeclare.engine.observation import observe, select_all

OUTCOME_UNCLEAR = "outcome-unclear"

_MAX_SENDS = 3
_OBSERVE_TIMEOUT_S = 5.0
_FIRST_STEP_S = 0.1
_LONGEST_STEP_S = 1.0

_ALREADY_CAUSES = DONE_CAUSES | {FaultCause.GONE_ALREADY}
"""If a repeated request is refused for one of these causes, the first request took effect."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Runs batches of operations. All operations in a batch have the same type. Thread-safe.

    follow_timeout_s: how long to wait for changes that reach the members one by one, in seconds.
    stop: an event that, when set, ends all waiting.
    request_deadline_s: how long brokers can work on a request that has no timeout of its own, in seconds.
    resend: a function that is called with operations before their request is sent again.
    check_lock: raises KdeclareError if this process must not change systems anymore.
    checks_all: whether to check every operation again immediately before it is sent, and not only operations
        with predecessors. Needed if a request of another process might still take effect.
    unanswered: the ids of operations whose outcome is being determined, for progress reports.
    replaced: the deletions of objects that the run creates again, by the id of the creation.
    visibility_timeout_s: how long to wait until systems have finished these deletions, in seconds.
    """

    connections: Connections
    secrets: SecretSource
    clock: Clock
    follow_timeout_s: float
    stop: Event
    request_deadline_s: float = REQUEST_DEADLINE_S
    resend: Callable[[Sequence[Operation]], None] = lambda _: None
    check_lock: SendCheck = lambda: None
    checks_all: bool = False
    unanswered: set[str] = field(default_factory=set)
    replaced: Mapping[str, Operation] = field(default_factory=dict)
    visibility_timeout_s: float = VISIBILITY_TIMEOUT_S

    def deadline_s(self, verb: str) -> float:
        """Return how long brokers can work on a request of this operation type, in seconds."""
        stated = OPERATION_TYPES[verb].find_deadline_s(self.connections)
        return self.request_deadline_s if stated is None else stated

    def run(
        self, operations: Sequence[Operation], temporary: Mapping[str, JsonValue]
    ) -> dict[str, OperationResult]:
        """Run the operations and return a result for each.

        Errors of the cluster become results, not exceptions.
        """
        results: dict[str, OperationResult] = {}
        try:
            self._await_deletions([self.replaced[op.id] for op in operations if op.id in self.replaced])
            pending = self._expect_own_changes(operations, temporary)
            results |= self._find_changed_since([op for op in pending if op.after or self.checks_all])
        except Fault as fault:
            return {op.id: build_failed_result(op, fault) for op in operations}
        pending = [op for op in pending if op.id not in results]
        for sends in range(1, _MAX_SENDS + 1):
            if not pending:
                break
            if sends > 1:
                self.resend(pending)
            sent_at = self.clock.monotonic()
            answers = self._send_after_deletions(pending)
            unknown_operations = [
                op for op in pending if _is_unknown(op, answers[op.id], is_resend=sends > 1)
            ]
            settled_ids = {op.id for op in pending} - {op.id for op in unknown_operations}
            results |= {op.id: _build_result(op, answers[op.id]) for op in pending if op.id in settled_ids}
            results |= self._settle_existing([op for op in pending if op.id in settled_ids], answers)
            repeatable = [
                op
                for op in unknown_operations
                if sends < _MAX_SENDS and get_operation_type(op).is_repeatable(op)
            ]
            unknown_operations = [op for op in unknown_operations if op not in repeatable]
            pending = repeatable
            if unknown_operations:
                settled_results = self._settle(unknown_operations, answers, sent_at, last=sends == _MAX_SENDS)
                results |= settled_results
                pending = [*repeatable, *(op for op in unknown_operations if op.id not in settled_results)]
            if repeatable:
                self.clock.sleep(_FIRST_STEP_S * 2**sends)
        propagating = [
            op
            for op in operations
            if get_operation_type(op).propagates and results[op.id].status is Status.DONE
        ]
        return results | self._await_propagation(propagating)

    def _send(self, operations: Sequence[Operation]) -> Mapping[str, Outcome]:
        verb = OPERATION_TYPES[operations[0].verb]
        secret_faults = {
            op.id: _build_secret_fault(problem)
            for op in operations
            for problem in find_changed_secrets([op], self.secrets)
        }
        sendable = [op for op in operations if op.id not in secret_faults]
        try:
            with require_permit(self.check_lock):
                outcomes = (
                    verb.execute(self.connections, sendable, self.secrets, validate_only=False)
                    if sendable
                    else {}
                )
        except Fault as fault:
            outcomes = dict.fromkeys((op.id for op in sendable), fault)
        # An answer that comes after the lock was lost proves nothing: another run may have changed the
        # same resource since. That run determines the outcome.
        self.check_lock()
        return {**outcomes, **secret_faults}

    def _await_deletions(self, deletions: Sequence[Operation]) -> None:
        """Wait until no member shows the objects that these operations deleted, or the time limit has passed.

        An object with a new id ends the wait: another client has created it. Raises Fault.
        """
        deadline, pauses = (
            self.clock.monotonic() + self.visibility_timeout_s,
            generate_pauses(_LONGEST_STEP_S),
        )
        pending = list(deletions)
        while pending:
            views = read_views(self.connections, pending)
            pending = [op for op in pending if not find_mismatches(op, views[op.id])]
            if not pending or self.stop.is_set() or self.clock.monotonic() >= deadline:
                return
            self.clock.sleep(next(pauses))

    def _send_after_deletions(self, operations: Sequence[Operation]) -> Mapping[str, Outcome]:
        """Send operations. Repeat a creation that is refused because the old object is still being deleted.

        Members can stop showing an object before the system has deleted it completely.
        """
        answers = dict(self._send(operations))
        deadline, pauses = (
            self.clock.monotonic() + self.visibility_timeout_s,
            generate_pauses(_LONGEST_STEP_S),
        )
        while True:
            refused = [op for op in operations if op.id in self.replaced and _is_existing(op, answers[op.id])]
            if not refused or self.stop.is_set() or self.clock.monotonic() >= deadline:
                return answers
            self.clock.sleep(next(pauses))
            try:
                views = read_views(self.connections, refused)
            except Fault:
                return answers
            absent = [op for op in refused if not find_mismatches(op, views[op.id])]
            if not absent:
                return answers
            self.resend(absent)
            answers |= self._send(absent)

    def _expect_own_changes(
        self, operations: Sequence[Operation], temporary: Mapping[str, JsonValue]
    ) -> list[Operation]:
        """Return the operations with expectations that include the values that this run has set.

        Otherwise, the run would mistake its own values for changes by other clients.
        """
        claimed_by_id = {op.id: claimed for op in operations if (claimed := _find_claimed(op, temporary))}
        current_views = read_views(self.connections, [op for op in operations if op.id in claimed_by_id])
        own_changes = {
            id_: {
                element: value
                for element, value in claimed.items()
                if current_views[id_].get(element) == value
            }
            for id_, claimed in claimed_by_id.items()
        }
        return [
            replace(op, expect={**op.expect, **own_changes[op.id]}) if op.id in own_changes else op
            for op in operations
        ]

    def _find_changed_since(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        """Check operations again before they are sent. Return results for stale operations.

        The effects of the predecessors can become visible with a delay, so the check waits for a short time.
        """
        changed = self._observe_until(operations, lambda op, now: not find_mismatches(op, now))
        return {
            op.id: OperationResult(op.id, Status.STALE, "stale", _format_changes(op, now))
            for op, now in changed
        }

    def _settle_existing(
        self, operations: Sequence[Operation], answers: Mapping[str, Outcome]
    ) -> dict[str, OperationResult]:
        """Return results for operations that were refused because their change had already been made.

        If a member of the system might have repeated the request (`OperationType.is_forwarded`), and the view
        is exactly what the operation was to produce, the operation succeeded. Its result has no id, because
        it is not certain that this run created the object. The result of any other operation is that another
        client made the change. An operation whose view has not changed since planning has no result, unless
        it was refused because the object exists: the system might not show the object yet.
        """
        faults = {op.id: fault for op in operations if isinstance(fault := answers[op.id], Fault)}
        causes = {id_: _find_cause(op, faults[id_]) for op in operations if (id_ := op.id) in faults}
        suspects = [op for op in operations if causes.get(op.id) in DONE_CAUSES]
        forwarded = [op for op in suspects if get_operation_type(op).is_forwarded]
        try:
            views = dict(read_views(self.connections, [op for op in suspects if op not in forwarded]))
            views |= {op.id: view for op, view in self._observe_until(forwarded, has_taken_effect)}
        except Fault:
            return {}
        results: dict[str, OperationResult] = {}
        for op in suspects:
            text = _format_changes(op, views[op.id]) if op.id in views else ""
            if op.id not in views:
                results[op.id] = build_done_result(op)
            elif text or causes[op.id] is FaultCause.EXISTS:  # the system may not show the new object yet
                text = text or faults[op.id].message
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
        """Settle the unknown outcome of unanswered requests.

        Brokers can execute a request until its deadline. Before the deadline, the absence of an effect proves
        nothing. An operation without an effect is omitted from the results, and its request is sent again. A
        second request is harmless, so it is sent before the deadline of the first request has passed.
        last: whether this was the last attempt to send the request.
        """
        self.unanswered.update(op.id for op in operations)
        try:
            return self._observe_until_deadline(operations, answers, sent_at, last=last)
        finally:
            self.unanswered.difference_update(op.id for op in operations)

    def _observe_until_deadline(
        self,
        operations: Sequence[Operation],
        answers: Mapping[str, Outcome],
        sent_at: float,
        *,
        last: bool,
    ) -> dict[str, OperationResult]:
        verb = operations[0].verb
        started_at, deadline = self.clock.monotonic(), sent_at + self.deadline_s(verb)
        results: dict[str, OperationResult] = {}
        pending, pauses = list(operations), generate_pauses(_LONGEST_STEP_S)
        while True:
            try:
                current_views = read_views(self.connections, pending)
            except Fault:
                current_views = None
            if current_views is not None:
                results |= {
                    op.id: build_done_result(op)
                    for op in pending
                    if has_taken_effect(op, current_views[op.id])
                }
                pending = [op for op in pending if op.id not in results]
            now_s = self.clock.monotonic()
            untouched = [
                op
                for op in pending
                if current_views is not None and not find_mismatches(op, current_views[op.id])
            ]
            if not last and len(untouched) == len(pending) and now_s - started_at >= _OBSERVE_TIMEOUT_S:
                return results
            if not pending or now_s >= max(deadline, started_at + _OBSERVE_TIMEOUT_S):
                break
            if self.stop.is_set():
                until = format_time_in(self.clock, deadline - now_s)
                return results | {op.id: _build_pending_result(op, answers[op.id], until) for op in pending}
            self.clock.sleep(next(pauses))
        if current_views is None:
            return results | {op.id: _build_unobserved_result(op, answers[op.id]) for op in pending}
        results |= {
            op.id: _build_unclear_result(op, answers[op.id], current_views[op.id])
            for op in pending
            if op not in untouched
        }
        if not last:
            return results
        return results | {op.id: _build_unanswered_result(op, answers[op.id]) for op in untouched}

    def _await_propagation(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        deadline, pauses = self.clock.monotonic() + self.follow_timeout_s, generate_pauses(_LONGEST_STEP_S)
        pending = list(operations)
        lagging_results: dict[str, OperationResult] = {}
        while pending:
            lagging_results = self._find_lagging(pending)
            pending = [op for op in pending if op.id in lagging_results]
            if not pending or self.stop.is_set() or self.clock.monotonic() >= deadline:
                break
            self.clock.sleep(next(pauses))
        return lagging_results

    def _find_lagging(self, operations: Sequence[Operation]) -> dict[str, OperationResult]:
        try:
            live = observe(self.connections, select_all(operations))
        except Fault as fault:
            return {op.id: _build_lagging_result(op, [f"no member responds: {fault}"]) for op in operations}
        lagging_members = ((op, get_operation_type(op).list_lagging_members(op, live)) for op in operations)
        return {op.id: _build_lagging_result(op, who) for op, who in lagging_members if who}

    def _observe_until(
        self, operations: Sequence[Operation], is_settled: Callable[[Operation, View], bool]
    ) -> list[tuple[Operation, View]]:
        """Observe the system until ``is_settled`` is true for all operations or the time limit has passed.

        Return the operations for which ``is_settled`` is not true, each with its last view.
        """
        waited_s, step_s = 0.0, _FIRST_STEP_S
        pending = list(operations)
        while True:
            current_views = read_views(self.connections, pending)
            pending = [op for op in pending if not is_settled(op, current_views[op.id])]
            if not pending or waited_s >= _OBSERVE_TIMEOUT_S:
                return [(op, current_views[op.id]) for op in pending]
            self.clock.sleep(step_s)
            waited_s, step_s = waited_s + step_s, step_s * 2


def _find_claimed(op: Operation, temporary: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the temporary values that this run has set for elements in the expectations of ``op``."""
    if not temporary or not op.after:
        return {}
    claims = get_operation_type(op).claims(op)
    return {e: temporary[claims[e]] for e in op.expect if e in claims and claims[e] in temporary}


def has_taken_effect(op: Operation, current_view: View) -> bool:
    """Whether the view proves that the operation took effect.

    If the operation does not change its view, the view proves nothing. This is the case for some operations
    on secrets.
    """
    return current_view == get_operation_type(op).expected_state(op) and bool(
        find_mismatches(op, current_view)
    )


def build_done_result(op: Operation) -> OperationResult:
    """Return the result of an operation that succeeded."""
    return OperationResult(op.id, Status.DONE)


def build_failed_result(op: Operation, fault: Fault) -> OperationResult:
    """Return the result of an operation that failed, with the reason that the system gave."""
    explanation = get_operation_type(op).explain(op, fault)
    if explanation.cause is FaultCause.DENIED_BY_POLICY:
        return OperationResult(op.id, Status.DENIED, fault.error, fault.message or UNEXPLAINED_DENIAL)
    message = f"{fault.message}. {explanation.hint}" if explanation.hint else fault.message
    return OperationResult(op.id, Status.FAILED, fault.error, message)


def _build_lagging_result(op: Operation, members: Sequence[str]) -> OperationResult:
    message = f"Applied, but not every member has picked up the change yet: {'; '.join(members)}."
    return OperationResult(op.id, Status.FAILED, NOT_PROPAGATED, message)


def _build_result(op: Operation, outcome: Outcome) -> OperationResult:
    if isinstance(outcome, Fault):
        return build_failed_result(op, outcome)
    created_id = outcome.id if isinstance(outcome, CreatedObject) else ""
    return replace(build_done_result(op), created_id=created_id or None)


def _build_secret_fault(problem: KdeclareError) -> Fault:
    return Fault(problem.diagnostics[0].code, str(problem))


def _is_unknown(op: Operation, outcome: Outcome, *, is_resend: bool) -> bool:
    """Whether the response leaves the outcome of the operation unknown, so that the system must be observed.

    is_resend: whether the request was sent before and got no response. If the second request was not executed
        (no connection, a quota), the outcome of the first request remains unknown.
    """
    if not isinstance(outcome, Fault):
        return False
    if outcome.kind is FaultKind.UNKNOWN:
        return True
    return is_resend and (outcome.kind is FaultKind.RETRIABLE or _find_cause(op, outcome) in _ALREADY_CAUSES)


def _is_existing(op: Operation, outcome: Outcome) -> bool:
    return isinstance(outcome, Fault) and _find_cause(op, outcome) is FaultCause.EXISTS


def _find_cause(op: Operation, fault: Fault) -> FaultCause:
    return get_operation_type(op).explain(op, fault).cause


def _build_unclear_result(op: Operation, answer: Outcome, current_view: View) -> OperationResult:
    message = (
        f"The request may have taken effect ({answer}), but the live state is neither the previous nor the "
        f"planned state: {_format_changes(op, current_view)}"
    )
    return OperationResult(op.id, Status.FAILED, OUTCOME_UNCLEAR, message)


def _build_unobserved_result(op: Operation, answer: Outcome) -> OperationResult:
    message = (
        f"The request may have taken effect ({answer}), but the live state could not be read afterwards."
    )
    return OperationResult(
        op.id, Status.UNKNOWN, answer.error if isinstance(answer, Fault) else None, message
    )


def _build_pending_result(op: Operation, answer: Outcome, until: str) -> OperationResult:
    message = (
        f"The outcome of the request is not known yet ({answer}), and the system may still execute it until "
        f"{until}. The next command checks the outcome."
    )
    return OperationResult(op.id, Status.UNKNOWN, None, message)


def _format_changes(op: Operation, current_view: View) -> str:
    return "; ".join(
        f"{m.element} was {format_value(m.planned)}, but is now {format_value(m.now)}"
        for m in find_mismatches(op, current_view)
    )


def _build_unanswered_result(op: Operation, answer: Outcome) -> OperationResult:
    message = f"The request was sent {_MAX_SENDS} times and had no effect ({answer})."
    return OperationResult(op.id, Status.FAILED, "REQUEST_TIMED_OUT", message)
