"""Retry policy: attempts, exponential backoff, jitter."""

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retry:
    """One retry that is about to be made.

    call: the method of the client; attempt: the number of the attempt that failed, from 1;
    items: how many are sent again, None for a whole request; delay_s: how long it waits before.
    """

    call: str
    attempt: int
    items: int | None
    fault: Fault
    delay_s: float


def log_retry(retry: Retry) -> None:
    """Tell those who read the log."""
    _log.info("%s: %s; attempt %d, again in %.1f s", retry.call, retry.fault, retry.attempt, retry.delay_s)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Tries again after a RETRIABLE fault; UNKNOWN and REFUSED ones it lets pass.

    Waits double from ``base_delay_s`` up to ``max_delay_s``, each cut by up to a half at random, so that
    many clients do not come back at the same time. attempts: counts the first one; jitter: gives numbers
    from 0 to 1. Safe to use from several threads.

    What a quota refuses (one of ``quota_errors``) is not a failed attempt: it is sent again as soon as the
    system takes more, until nothing has been taken for ``quota_patience_s``.
    """

    attempts: int = 6
    base_delay_s: float = 0.1
    max_delay_s: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    on_retry: Callable[[Retry], None] = lambda _: None
    jitter: Callable[[], float] = random.random
    quota_patience_s: float = 300.0
    quota_errors: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raises ValueError where nothing would ever be tried."""
        if self.attempts < 1:
            raise ValueError("at least one attempt is needed")

    def whole(self, call: str, send: Callable[[], T]) -> T:
        """What ``send`` gives in the end. Raises its last Fault."""
        attempts = Attempts(self, call)
        while True:
            try:
                return send()
            except Fault as fault:
                if not attempts.goes_on(None, fault):
                    raise


class Attempts:
    """The attempts at one call."""

    def __init__(self, policy: RetryPolicy, call: str) -> None:
        self._policy = policy
        self._call = call
        self._sent = 0
        self._failed = 0
        self._delayed_s = 0.0
        self._items: int | None = None

    def goes_on(self, items: int | None, fault: Fault) -> bool:
        """Whether to try once more after an attempt; if so, after waiting. ``items``: how many are left."""
        if fault.kind is not FaultKind.RETRIABLE:
            return False
        self._sent += 1
        over_quota = fault.error in self._policy.quota_errors
        delay_s = self._compute_quota_delay_s(items, fault) if over_quota else self._compute_delay_s()
        if delay_s is None:
            return False
        self._policy.on_retry(Retry(self._call, self._sent, items, fault, delay_s))
        self._policy.sleep(delay_s)
        return True

    def _compute_delay_s(self) -> float | None:
        self._failed += 1
        if self._failed >= self._policy.attempts:
            return None
        delay_s: float = min(self._policy.max_delay_s, self._policy.base_delay_s * 2 ** (self._failed - 1))
        return delay_s * (1 - self._policy.jitter() / 2)

    def _compute_quota_delay_s(self, items: int | None, fault: Fault) -> float | None:
        if items != self._items:  # some have been taken since
            self._items, self._delayed_s = items, 0.0
        delay_s = fault.retry_after_s + self._policy.base_delay_s * (1 + self._policy.jitter())
        if self._policy.attempts == 1 or self._delayed_s + delay_s > self._policy.quota_patience_s:
            return None
        self._delayed_s += delay_s
        return delay_s
