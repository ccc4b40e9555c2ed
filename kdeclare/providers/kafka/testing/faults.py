"""What goes wrong, and when: a plan of faults for the in-process cluster, and the log of requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdeclare.core.faults import Fault, FaultKind

if TYPE_CHECKING:
    from kdeclare.providers.kafka.testing.cluster import MemoryCluster

MUTATING = frozenset(
    {
        "create_topics",
        "delete_topics",
        "create_partitions",
        "alter_configs",
        "reassign",
        "elect_leaders",
        "move_log_dirs",
    }
)
"""The methods of the port that change something unless they only validate."""

TIMED_OUT = Fault("REQUEST_TIMED_OUT", "The request timed out.", FaultKind.UNKNOWN)


class Crash(BaseException):
    """The process ended here. Not an Exception, so that nothing handles it by mistake."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request that reached (or was about to reach) the cluster.

    items: what it was about, as text, in the order given (``orders``, ``TOPIC/orders``, ``orders-0``,
        ``orders-0@1`` for the replica on broker 1).
    outcome: ``done``, ``failed`` (the whole request), ``lost`` (before any effect), ``unanswered``
        (after it), ``crashed before`` or ``crashed after``.
    """

    method: str
    items: tuple[str, ...]
    validate_only: bool = False
    outcome: str = "done"

    @property
    def mutating(self) -> bool:
        """Whether it was meant to change something."""
        return self.method in MUTATING and not self.validate_only


@dataclass
class Rule:
    """One thing that goes wrong; made by the methods of FaultPlan."""

    nth: int | None
    method: str | None
    item: str | None
    fault: Callable[[], Fault] | None = None
    before: Callable[[], BaseException] | None = None
    after: Callable[[], BaseException] | None = None
    callback: Callable[[MemoryCluster], object] | None = None
    seen: int = 0

    def takes(self, call: Call) -> bool:
        """Whether it is this request's turn; counts it if it is of the kind that the rule is about."""
        right = call.mutating if self.method is None else call.method == self.method
        if not right or (self.item is not None and self.item not in call.items):
            return False
        self.seen += 1
        return self.nth is None or self.seen == self.nth


def _again(fault: Fault) -> Callable[[], Fault]:
    # a new exception each time, so that tracebacks do not pile up on one
    return lambda: Fault(fault.error, fault.message, fault.kind, fault.retry_after_s)


@dataclass
class FaultPlan:
    """Rules, each with its own count of the requests that it is about.

    ``nth`` counts from 1 and from when the rule was made; None is every one. ``method`` is the port's
    method; None is any request that changes something (validate-only ones are none). ``item`` narrows
    a rule to requests with that item, as ``Call.items`` writes it.
    """

    _rules: list[Rule] = field(default_factory=list)

    def fail(
        self, fault: Fault, *, nth: int | None = 1, method: str | None = None, item: str | None = None
    ) -> None:
        """Answer with ``fault`` and do nothing: for that one item, or for the whole request."""
        rule = Rule(nth, method, item)
        if item is None:
            rule.before = _again(fault)
        else:
            rule.fault = _again(fault)
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
        """Raise a fault of unknown outcome, either before the effect or once it is done."""
        self._add_raise(_again(fault), after_effect, nth, method, item)

    def crash(
        self,
        *,
        after_effect: bool,
        nth: int | None = 1,
        method: str | None = None,
        item: str | None = None,
    ) -> None:
        """Raise Crash, either before the effect or once it is done."""
        self._add_raise(Crash, after_effect, nth, method, item)

    def meanwhile(
        self,
        callback: Callable[[MemoryCluster], object],
        *,
        nth: int | None = 1,
        method: str | None = None,
        item: str | None = None,
    ) -> None:
        """Let someone else do something just before the request; they get a client without faults."""
        rule = Rule(nth, method, item)
        rule.callback = callback
        self._rules.append(rule)

    def clear(self) -> None:
        """No more faults."""
        self._rules.clear()

    def _add_raise(
        self,
        error: Callable[[], BaseException],
        after: bool,
        nth: int | None,
        method: str | None,
        item: str | None,
    ) -> None:
        rule = Rule(nth, method, item)
        if after:
            rule.after = error
        else:
            rule.before = error
        self._rules.append(rule)

    def due(self, call: Call) -> tuple[Rule, ...]:
        """The rules whose turn it is with ``call``."""
        return tuple(rule for rule in self._rules if rule.takes(call))
