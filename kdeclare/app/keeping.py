"""Connections that outlive a command, for a shell that runs one after the other."""

import logging
import threading
import time
from concurrent.futures import Future, wait
from contextlib import suppress

from kdeclare.core.connecting import Closable, Keepable, Target
from kdeclare.core.faults import Fault

_log = logging.getLogger(__name__)

_ANSWERS_WITHIN_S = 2.0
"""How long a kept connection may take to say that it still works."""
_MOST = 4
"""How many are kept; of more, the one that was wanted longest ago is let go."""


class KeptConnections:
    """Gives the connection again which it has opened before, if it still answers.

    Whoever gets one that is `Keepable` must not close it. One that does not answer any more is opened
    again: then what is wrong is said as it is at a first connection, within the time that was given for
    it, and a system is found that came back elsewhere. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Target, Keepable] = {}

    def open(self, target: Target, timeout_s: float) -> object:
        """The connection. Raises KdeclareError."""
        until = time.monotonic() + timeout_s
        with self._lock:
            known = self._open.get(target)
        if known is not None:
            if _answers(known, min(timeout_s / 2, _ANSWERS_WITHIN_S)):
                self._keep(target, known)
                return known
            self._let_go(target, known)
        made = target.open(max(0.1, until - time.monotonic()))
        if isinstance(made, Keepable):
            self._keep(target, made)
        return made

    def close(self) -> None:
        """Let go of all of them, waiting for nothing."""
        with self._lock:
            closing = list(self._open.items())
        for item in closing:
            self._let_go(*item)

    def _keep(self, target: Target, kept: Keepable) -> None:
        with self._lock:
            before = self._open.pop(target, kept)
            self._open[target] = kept  # the last is the latest
            spare = list(self._open.items())[:-_MOST]
        if before is not kept:  # two were opened at the same time
            _close(before)
        for item in spare:
            self._let_go(*item)

    def _let_go(self, target: Target, kept: Keepable) -> None:
        with self._lock:
            if self._open.get(target) is kept:
                del self._open[target]
        _close(kept)


def _answers(connection: Keepable, within_s: float) -> bool:
    answered: Future[bool] = Future()

    def ask() -> None:
        try:
            connection.check()
        except Exception as problem:  # noqa: BLE001  a new connection says what is wrong, if it still is
            _log.info("connecting anew: %s", problem)
            answered.set_result(False)
        else:
            answered.set_result(True)

    threading.Thread(target=ask, name="still-there", daemon=True).start()
    return bool(wait([answered], within_s).done) and answered.result()


def _close(connection: object) -> None:
    """In the background: what does not answer does not end at once either."""

    def close() -> None:
        if isinstance(connection, Closable):
            with suppress(Fault, OSError):
                connection.close()

    threading.Thread(target=close, name="close", daemon=True).start()
