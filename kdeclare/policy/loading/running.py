"""Running other people's code while policies are loaded: within a limit of time, and away from stdout."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from kdeclare.policy import asking
from kdeclare.policy.apart import own_stdout

_T = TypeVar("_T")
_here = threading.local()


class TooSlow(Exception):
    """A call that did not come to an end in time; its thread is lost to it."""


def is_loading() -> bool:
    """Whether this thread is one that loads policies."""
    return getattr(_here, "loading", False)


def within_limit(call: Callable[[], _T]) -> _T:
    """What a call returns or raises; what it prints goes to stderr, as data goes to stdout.

    It has as long as a policy has for one topic (`asking.LIMIT_S`). Raises TooSlow.
    """
    if is_loading():
        return call()  # a policy within a policy: the limit is for both
    limit_s = asking.LIMIT_S
    results: SimpleQueue[Callable[[], _T]] = SimpleQueue()
    with own_stdout() as lose:
        threading.Thread(target=_work, args=(call, results), name="policy-loading", daemon=True).start()
        try:
            result = results.get(timeout=limit_s)
        except Empty:
            lose()
            raise TooSlow(f"it did not come to an end within {limit_s:g} s") from None
    return result()


def _work(call: Callable[[], _T], results: SimpleQueue[Callable[[], _T]]) -> None:
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
