"""Fault injection for tests of providers, with a log of the requests."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import Generic, NoReturn, TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind, Outcome
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.parts import Connections
from kdeclare.core.secrets.secret_refs import SecretSource

TIMED_OUT = Fault("REQUEST_TIMED_OUT", "The request timed out.", FaultKind.UNKNOWN)

_System = TypeVar("_System")
_Answer = TypeVar("_Answer")
_Call = TypeVar("_Call", bound="Call")


class Crash(BaseException):
    """An exception that simulates a crash.

    Its base class is BaseException, so that ``except Exception`` does not catch it.
    """


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the system, as recorded in the log of the test.

    method: the name of the method, or the operation type. items: the items of the request, as strings, in
        order.
    outcome: ``done``, ``failed`` (the whole request), ``lost`` (timed out before it took effect),
        ``unanswered`` (timed out after it took effect), ``crashed before`` or ``crashed after`` (crashed
        before or after it took effect).
    """

    method: str
    items: tuple[str, ...]
    validate_only: bool = False
    outcome: str = "done"

    @property
    def is_mutating(self) -> bool:
        """Whether the request changes the system, instead of only validating a change."""
        return not self.validate_only


@dataclass
class FaultRule(Generic[_System]):
    """A rule that injects one type of fault. The methods of `FaultPlan` create rules."""

    nth: int | None
    method: str | None
    get_batch_key: str | None
    fault: Callable[[], Fault] | None = None
    before: Callable[[], BaseException] | None = None
    after: Callable[[], BaseException] | None = None
    callback: Callable[[_System], object] | None = None
    seen: int = 0

    def is_due(self, call: Call) -> bool:
        """Count the request if it matches the rule, and return whether the rule applies to the request."""
        is_relevant = call.is_mutating if self.method is None else call.method == self.method
        if not is_relevant or (self.get_batch_key is not None and self.get_batch_key not in call.items):
            return False
        self.seen += 1
        return self.nth is None or self.seen == self.nth


def _make_fault_factory(fault: Fault) -> Callable[[], Fault]:
    # A new exception each time, so that tracebacks do not accumulate on one object.
    return lambda: Fault(fault.error, fault.message, fault.kind, fault.retry_after_s)


@dataclass
class FaultPlan(Generic[_System]):
    """The rules for fault injection. Each rule counts the requests that match it.

    The methods have these parameters:
    method: the method of matching requests; None for all requests that are not validate-only.
    item: an item that matching requests contain, in the form of ``Call.items``; None for any items.
    nth: the number of the matching request that the rule applies to, counted from 1; None for every matching
    request.
    """

    _rules: list[FaultRule[_System]] = field(default_factory=list)

    def fail(
        self, fault: Fault, *, nth: int | None = 1, method: str | None = None, item: str | None = None
    ) -> None:
        """Make one item or the whole request fail with ``fault``, without any effect."""
        rule = FaultRule[_System](nth, method, item)
        if item is None:
            rule.before = _make_fault_factory(fault)
        else:
            rule.fault = _make_fault_factory(fault)
        self._rules.append(rule)

    def time_out(
        self,
        *,
        after_effect: bool,
        nth: int | None = 1,
        method: str | None = None,
        item: str | None = None,
        fault: Fault = TIMED_OUT,
    ) -> None:
        """Make a request time out, either before or after its effect."""
        self._add_raise(_make_fault_factory(fault), after_effect, nth, method, item)

    def crash(
        self,
        *,
        after_effect: bool,
        nth: int | None = 1,
        method: str | None = None,
        item: str | None = None,
    ) -> None:
        """Raise `Crash`, either before or after the effect of a request."""
        self._add_raise(Crash, after_effect, nth, method, item)

    def run_before(
        self,
        callback: Callable[[_System], object],
        *,
        nth: int | None = 1,
        method: str | None = None,
        item: str | None = None,
    ) -> None:
        """Run a callback just before the request, to simulate a change by another client."""
        rule = FaultRule[_System](nth, method, item)
        rule.callback = callback
        self._rules.append(rule)

    def clear(self) -> None:
        """Remove all rules."""
        self._rules.clear()

    def _add_raise(
        self,
        make_error: Callable[[], BaseException],
        after_effect: bool,
        nth: int | None,
        method: str | None,
        item: str | None,
    ) -> None:
        rule = FaultRule[_System](nth, method, item)
        if after_effect:
            rule.after = make_error
        else:
            rule.before = make_error
        self._rules.append(rule)

    def due(self, call: Call) -> tuple[FaultRule[_System], ...]:
        """Count the request ``call`` in each rule that it matches, and return the rules that apply to it."""
        return tuple(rule for rule in self._rules if rule.is_due(call))


def run_request(
    faults: FaultPlan[_System],
    calls: list[_Call],
    call: _Call,
    answer_request: Callable[[Mapping[str, Fault]], _Answer],
    open_system: Callable[[], _System],
) -> _Answer:
    """Execute a request with the injected faults, and log the request in ``calls``.

    answer_request: executes the request. Its argument contains the faults to return for single items.
    open_system: returns the system, for callbacks that simulate a change by another client.
    """
    rules = faults.due(call)
    for rule in rules:
        if rule.callback is not None:
            rule.callback(open_system())
    for rule in rules:
        if rule.before is not None:
            _fail(calls, call, rule.before(), "before")
    result = answer_request(
        {rule.get_batch_key: rule.fault() for rule in rules if rule.get_batch_key and rule.fault}
    )
    for rule in rules:
        if rule.after is not None:
            _fail(calls, call, rule.after(), "after")
    calls.append(call)
    return result


def _fail(calls: list[_Call], call: _Call, error: BaseException, when: str) -> NoReturn:
    if isinstance(error, Fault):
        lost_outcome = "lost" if when == "before" else "unanswered"
        outcome = lost_outcome if error.kind is FaultKind.UNKNOWN else "failed"
    else:
        outcome = f"crashed {when}"
    calls.append(replace(call, outcome=outcome))
    raise error


@dataclass
class FaultyOperations:
    """Logs the execution of operations, and injects faults.

    The system can be a fake or a real system. In the log, ``Call.method`` is the operation type, and
    ``Call.items`` are the resources.
    """

    faults: FaultPlan[None] = field(default_factory=FaultPlan)
    calls: list[Call] = field(default_factory=list)

    @property
    def writes(self) -> list[Call]:
        """All requests except validate-only requests."""
        return [call for call in self.calls if call.is_mutating]

    @contextmanager
    def intercept(self, operation_types: Iterable[OperationType]) -> Iterator[None]:
        """Log operations of these types and inject faults into them until the end of the block."""
        intercepted = tuple(operation_types)
        for verb in intercepted:
            vars(verb)["execute"] = partial(self._execute, verb.name, verb.execute)
        try:
            yield
        finally:
            for verb in intercepted:
                del vars(verb)["execute"]

    def _execute(
        self,
        name: str,
        execute_batch: Callable[..., Mapping[str, Outcome]],
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        def answer_request(faults_by_resource: Mapping[str, Fault]) -> Mapping[str, Outcome]:
            sent_operations = [op for op in ops if str(op.resource) not in faults_by_resource]
            outcomes = (
                execute_batch(connections, sent_operations, secrets, validate_only=validate_only)
                if sent_operations
                else {}
            )
            return {
                **outcomes,
                **{op.id: faults_by_resource[str(op.resource)] for op in ops if op not in sent_operations},
            }

        call = Call(name, tuple(str(op.resource) for op in ops), validate_only)
        return run_request(self.faults, self.calls, call, answer_request, lambda: None)
