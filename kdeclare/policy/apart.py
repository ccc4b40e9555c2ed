"""Keeping what other people's code prints away from stdout, where data goes."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast


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
