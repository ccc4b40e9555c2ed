"""Running other people's code: within a limit of time, away from stdout, and with what it raised in words."""

import logging
import os
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from reprlib import repr as shortened
from types import TracebackType
from typing import IO, Any, TypeVar, cast

from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.policy_subjects import PolicyRequest, PolicyViolation, Withheld, noun_of
from kdeclare.policy.configured import ConfiguredPolicy


@contextmanager
def own_stdout() -> Iterator[Callable[[], None]]:
    """Inside, stdout is this thread's only; what other threads print goes to stderr.

    Yields what to call where such a thread is lost: it may go on printing.
    """
    before, lost = sys.stdout, []
    sys.stdout = cast(IO[str], _Stdout(before))
    try:
        yield lambda: lost.append(True)
    finally:
        if not lost:
            sys.stdout = before


class _Stdout:
    """stdout for the thread that makes it, stderr for all others."""

    def __init__(self, stream: object) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        mine = threading.get_ident() == self._thread
        return getattr(self._stream if mine else sys.stderr, name)


_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_NOT_THEIRS = ("<", *(f"{folder}{os.sep}" for folder in (*_LIBRARIES, Path(__file__).parents[1])))


def told(raised: BaseException) -> str:
    """``ValueError: too short (policies/naming.py:12)``; without a place where none of the code is theirs."""
    what = f"{type(raised).__name__}: {_message(raised)}".removesuffix(": ")
    where = _where(raised)
    return f"{what} ({where})" if where else what


def _message(raised: BaseException) -> str:
    for said in (_said, repr):
        try:
            return " ".join(str.split(said(raised))).rstrip(".")
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001, S112  even this is their code
            continue
    return ""


def _said(raised: BaseException) -> str:
    return raised.msg if isinstance(raised, SyntaxError) and raised.msg else str(raised)


def _where(raised: BaseException) -> str | None:
    if isinstance(raised, SyntaxError) and raised.filename and raised.lineno:
        return f"{_shown(raised.filename)}:{raised.lineno}"
    theirs = [f for f in traceback.extract_tb(raised.__traceback__) if _is_theirs(f.filename)]
    return f"{_shown(theirs[-1].filename)}:{theirs[-1].lineno}" if theirs else None


def _is_theirs(file: str) -> bool:
    return not file.startswith(_NOT_THEIRS)


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


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
            threading.Thread(
                target=_run_asking, args=(self._calls, self._answers), name="policy", daemon=True
            ).start()
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


def _run_asking(calls: SimpleQueue[_Call | None], answers: SimpleQueue[_Answer]) -> None:
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


_T = TypeVar("_T")
_here = threading.local()


class TooSlow(Exception):
    """A call that did not come to an end in time; its thread is lost to it."""


def is_loading() -> bool:
    """Whether this thread is one that loads policies."""
    return getattr(_here, "loading", False)


def within_limit(call: Callable[[], _T]) -> _T:
    """What a call returns or raises; what it prints goes to stderr, as data goes to stdout.

    It has as long as a policy has for one topic (`LIMIT_S`). Raises TooSlow.
    """
    if is_loading():
        return call()  # a policy within a policy: the limit is for both
    limit_s = LIMIT_S
    results: SimpleQueue[Callable[[], _T]] = SimpleQueue()
    with own_stdout() as lose:
        threading.Thread(
            target=_run_loading, args=(call, results), name="policy-loading", daemon=True
        ).start()
        try:
            result = results.get(timeout=limit_s)
        except Empty:
            lose()
            raise TooSlow(f"it did not come to an end within {limit_s:g} s") from None
    return result()


def _run_loading(call: Callable[[], _T], results: SimpleQueue[Callable[[], _T]]) -> None:
    _here.loading = True
    try:
        value = call()
    except BaseException as e:  # noqa: BLE001  raised again where it is waited for
        results.put(_raising(e))
    else:
        results.put(lambda: value)


def _raising(e: BaseException) -> Callable[[], Any]:
    def result() -> Any:
        raise e

    return result
