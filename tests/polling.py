"""Waiting for effects that brokers, workers, processes and threads show with a delay."""

import time
from collections.abc import Callable
from typing import TypeVar

from kdeclare.core.live.faults import Fault

_Found = TypeVar("_Found")


def wait_for(
    find: Callable[[], _Found | None], seconds: float = 60, every: float = 0.05, *, problem: str = ""
) -> _Found:
    """Return the first true result of a function.

    seconds: the maximum time to wait
    every: the seconds between two calls
    problem: what is wrong if no result is true in time
    Raises AssertionError, which names the last result.
    """
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, (
            f"{problem or 'no true result'} within {seconds} s; last: {found!r}"
        )
        time.sleep(every)
    return found


def retry_until_passes(
    check: Callable[[], _Found],
    seconds: float = 90,
    every: float = 0.2,
    *,
    errors: tuple[type[Exception], ...] = (AssertionError, KeyError, IndexError, Fault),
) -> _Found:
    """Repeat a check until it passes, and return its result. A broker can be behind for a moment.

    seconds: the time after which its next error is raised
    every: the seconds between two checks
    errors: the exceptions after which the check is repeated
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except errors:
            if time.monotonic() > deadline:
                raise
            time.sleep(every)
