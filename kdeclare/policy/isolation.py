"""Run custom policy code with a time limit, redirect its output to stderr, and format its exceptions."""

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
from kdeclare.core.policies.policy_request import PolicyRequest, PolicyViolation, UnavailableError
from kdeclare.core.policies.policy_subjects import format_kind
from kdeclare.policy.configured_policy import ConfiguredPolicy


@contextmanager
def isolate_stdout() -> Iterator[Callable[[], None]]:
    """Reserve stdout for the calling thread inside a ``with`` block. Other threads print to stderr.

    Yield a function. The caller must call this function if it abandons a thread that is still running and
    can therefore still print. Other threads then print to stderr even after the ``with`` block.
    """
    original_stdout, lost_marks = sys.stdout, []
    sys.stdout = cast(IO[str], _ThreadStdout(original_stdout))
    try:
        yield lambda: lost_marks.append(True)
    finally:
        if not lost_marks:
            sys.stdout = original_stdout


class _ThreadStdout:
    """A stream that writes to stdout in the thread that created it, and to stderr in all other threads."""

    def __init__(self, stream: object) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        is_own_thread = threading.get_ident() == self._thread
        return getattr(self._stream if is_own_thread else sys.stderr, name)


_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_LIBRARY_PREFIXES = ("<", *(f"{folder}{os.sep}" for folder in (*_LIBRARIES, Path(__file__).parents[1])))


def format_exception(exception: BaseException) -> str:
    """Format an exception with its position: ``ValueError: too short (policies/naming.py:12)``.

    If no custom policy code is in the traceback, the position is omitted.
    """
    summary = f"{type(exception).__name__}: {_format_message(exception)}".removesuffix(": ")
    location = _find_location(exception)
    return f"{summary} ({location})" if location else summary


def _format_message(exception: BaseException) -> str:
    for convert in (_get_text, repr):
        try:
            return " ".join(str.split(convert(exception))).rstrip(".")
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001, S112  __str__ and __repr__ can be custom code
            continue
    return ""


def _get_text(exception: BaseException) -> str:
    return exception.msg if isinstance(exception, SyntaxError) and exception.msg else str(exception)


def _find_location(exception: BaseException) -> str | None:
    if isinstance(exception, SyntaxError) and exception.filename and exception.lineno:
        return f"{_format_path(exception.filename)}:{exception.lineno}"
    policy_frames = [f for f in traceback.extract_tb(exception.__traceback__) if _is_policy_code(f.filename)]
    return f"{_format_path(policy_frames[-1].filename)}:{policy_frames[-1].lineno}" if policy_frames else None


def _is_policy_code(file: str) -> bool:
    return not file.startswith(_LIBRARY_PREFIXES)


def _format_path(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


_log = logging.getLogger(__name__)

LIMIT_S = 30.0
"""The time limit of a policy for one resource, in seconds. The time to read live state does not count."""
_POLL_S = 0.05

_Answer = str | BaseException | None
_Call = Callable[[], _Answer]


class PolicyEvaluator:
    """A context manager that evaluates policies. Custom code runs in a thread that ends with the context.

    A policy that times out is not called again, and its remaining requests are denied.
    """

    def __init__(self, limit_s: float | None = None, is_busy: Callable[[], bool] = lambda: False) -> None:
        """Create the evaluator.

        limit_s: the time limit in seconds; None for `LIMIT_S`.
        is_busy: a function that returns whether a policy is waiting for live state. The waiting time does not
            count.
        """
        self._limit_s = LIMIT_S if limit_s is None else limit_s
        self._is_busy = is_busy
        self._lost_policies: set[str] = set()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        self._running = False

    def __enter__(self) -> "PolicyEvaluator":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._calls.put(None)

    def ask(self, item: ConfiguredPolicy, request: PolicyRequest) -> str | None:
        """Return the message of a policy that denies the request, or None if the policy allows the request.

        Raises Fault if a system did not return data that the policy reads, and UnavailableError if the
        request does not contain the data.
        """
        if self._lost_policies and item.name in self._lost_policies:
            return (
                f"{_format_policy(item)} timed out for another {format_kind(item.kind)} "
                f"and is not called again."
            )
        if item.bounded:
            answer = _evaluate_policy(item, request)
        else:
            answer = self._evaluate_in_time(item, lambda: _evaluate_policy(item, request))
        if answer is not None and not isinstance(answer, str):
            raise answer
        return answer

    def _evaluate_in_time(self, policy: ConfiguredPolicy, call: _Call) -> _Answer:
        if not self._running:
            self._running = True
            threading.Thread(
                target=_serve_calls, args=(self._calls, self._answers), name="policy", daemon=True
            ).start()
        with isolate_stdout() as mark_lost:
            self._calls.put(call)
            remaining_s = self._limit_s
            while remaining_s > 0:
                started_s = time.monotonic()
                try:
                    return self._answers.get(timeout=min(remaining_s, _POLL_S))
                except Empty:
                    remaining_s -= 0 if self._is_busy() else time.monotonic() - started_s
            mark_lost()
        self._lost_policies.add(policy.name)
        # the thread of this policy is abandoned; the other policies run in a new thread
        self._calls, self._answers, self._running = SimpleQueue(), SimpleQueue(), False
        return f"{_format_policy(policy)} timed out after {self._limit_s:g} s."


def _serve_calls(calls: SimpleQueue[_Call | None], answers: SimpleQueue[_Answer]) -> None:
    while (call := calls.get()) is not None:
        answers.put(call())


def _format_policy(policy: ConfiguredPolicy) -> str:
    """Return the name and position of a policy, for messages."""
    return f"Policy '{policy.name}'" + (f" ({policy.place})" if policy.place else "")


def _evaluate_policy(policy: ConfiguredPolicy, request: PolicyRequest) -> _Answer:
    """Return the message of a violation or failure, or None if the policy allows the request.

    Return an exception if the calling thread must raise it.
    """
    try:
        return _find_objection(policy, request)
    except (Fault, UnavailableError, KeyboardInterrupt) as signal:
        return signal
    except BaseException as failure:  # noqa: BLE001  any exception denies the request
        _log.info("Policy '%s' failed for '%s'", policy.name, request.name, exc_info=True)
        return f"{_format_policy(policy)} failed, so the request is denied: {format_exception(failure)}."


def _find_objection(policy: ConfiguredPolicy, request: PolicyRequest) -> str | None:
    validate: Callable[..., object] = policy.policy.validate
    try:
        returned = validate(request)
    except PolicyViolation as violation:
        return str(violation) or "The policy denied the request without a reason."
    if returned is None:
        return None
    summary = f"{_format_policy(policy)} returned {shortened(returned)}"
    return f"{summary}, but a policy must return None, or raise PolicyViolation to deny the request."


_T = TypeVar("_T")
_thread_state = threading.local()


class TimeLimitExceeded(Exception):
    """Raised if a call exceeds its time limit. The thread of the call is abandoned."""


def is_loading() -> bool:
    """Return whether the calling thread is loading policies."""
    return getattr(_thread_state, "loading", False)


def call_within_limit(call: Callable[[], _T]) -> _T:
    """Call a function in a separate thread, and return its result or raise its exception.

    The output of the function goes to stderr, because stdout is reserved for data. Raises TimeLimitExceeded
    if the function does not return within `LIMIT_S` seconds.
    """
    if is_loading():
        return call()  # a nested policy shares the time limit of the outer policy
    limit_s = LIMIT_S
    results: SimpleQueue[Callable[[], _T]] = SimpleQueue()
    with isolate_stdout() as mark_lost:
        threading.Thread(
            target=_run_loading_call, args=(call, results), name="policy-loading", daemon=True
        ).start()
        try:
            result = results.get(timeout=limit_s)
        except Empty:
            mark_lost()
            raise TimeLimitExceeded(f"it did not finish within {limit_s:g} s") from None
    return result()


def _run_loading_call(call: Callable[[], _T], results: SimpleQueue[Callable[[], _T]]) -> None:
    _thread_state.loading = True
    try:
        value = call()
    except BaseException as e:  # noqa: BLE001  raised again in the calling thread
        results.put(_make_raiser(e))
    else:
        results.put(lambda: value)


def _make_raiser(e: BaseException) -> Callable[[], Any]:
    def raise_error() -> Any:
        raise e

    return raise_error
