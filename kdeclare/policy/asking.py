"""Asking one policy about one request, whatever the policy does then."""

import logging
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from reprlib import repr as shortened
from threading import Thread
from types import TracebackType

from kdeclare.core.faults import Fault
from kdeclare.core.policy_subjects import PolicyRequest, PolicyViolation, Withheld, noun_of
from kdeclare.policy.apart import own_stdout
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.raised import told

_log = logging.getLogger(__name__)

LIMIT_S = 30.0
"""How long a policy may think about one resource, in seconds; reading what it asks for does not count."""
_LOOK_S = 0.05

_Answer = str | BaseException | None
_Call = Callable[[], _Answer]


class Asking:
    """Asks policies; a context, as other people's code runs in a thread of its own while it is open.

    A policy that does not answer in time is not asked again: all else that it would have been asked
    about is denied.
    """

    def __init__(self, limit_s: float | None = None, busy: Callable[[], bool] = lambda: False) -> None:
        """limit_s: None is `LIMIT_S`. busy: whether somebody else keeps the policy waiting just now."""
        self._limit_s = LIMIT_S if limit_s is None else limit_s
        self._busy = busy
        self._lost: set[str] = set()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        self._running = False

    def __enter__(self) -> "Asking":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._calls.put(None)

    def ask(self, item: ConfiguredPolicy, request: PolicyRequest) -> str | None:
        """What the policy has against the request; None if nothing.

        Raises Fault where the cluster did not give what the policy wanted to see, and Withheld where the
        request does not tell it.
        """
        if self._lost and item.name in self._lost:
            return f"{_named(item)} did not answer about another {noun_of(item.kind)} and is not asked again."
        if item.bounded:
            answer = _answer(item, request)
        else:
            answer = self._in_time(item, lambda: _answer(item, request))
        if answer is not None and not isinstance(answer, str):
            raise answer
        return answer

    def _in_time(self, item: ConfiguredPolicy, call: _Call) -> _Answer:
        if not self._running:
            self._running = True
            Thread(target=_work, args=(self._calls, self._answers), name="policy", daemon=True).start()
        with own_stdout() as lose:
            self._calls.put(call)
            left = self._limit_s
            while left > 0:
                began = time.monotonic()
                try:
                    return self._answers.get(timeout=min(left, _LOOK_S))
                except Empty:
                    left -= 0 if self._busy() else time.monotonic() - began
            lose()
        self._lost.add(item.name)
        # the thread is lost to it; the others get a new one
        self._calls, self._answers, self._running = SimpleQueue(), SimpleQueue(), False
        return f"{_named(item)} did not answer within {self._limit_s:g} s."


def _work(calls: SimpleQueue[_Call | None], answers: SimpleQueue[_Answer]) -> None:
    while (call := calls.get()) is not None:
        answers.put(call())


def _named(item: ConfiguredPolicy) -> str:
    """A policy that could not say what it thinks: with where it stands, for those who keep it."""
    return f"Policy '{item.name}'" + (f" ({item.place})" if item.place else "")


def _answer(item: ConfiguredPolicy, request: PolicyRequest) -> _Answer:
    """A violation's message, None, or what is to be raised where the answer is waited for."""
    try:
        return _objection(item, request)
    except (Fault, Withheld, KeyboardInterrupt) as none:
        return none
    except BaseException as failure:  # noqa: BLE001  whatever other people's code raises denies
        _log.info("Policy '%s' failed about '%s'", item.name, request.name, exc_info=True)
        return f"{_named(item)} failed, and what cannot be judged is denied: {told(failure)}."


def _objection(item: ConfiguredPolicy, request: PolicyRequest) -> str | None:
    validate: Callable[..., object] = item.policy.validate
    try:
        returned = validate(request)
    except PolicyViolation as violation:
        return str(violation) or "It is against the policy, which does not say why."
    if returned is None:
        return None
    what = f"{_named(item)} returned {shortened(returned)}"
    return f"{what}; a policy denies by raising PolicyViolation and returns nothing."
