"""The retry policy: the number of attempts, exponential backoff, and jitter."""

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
    """A retry that is about to be sent.

    call: the name of the client method. attempt: the number of the failed attempt, from 1.
    items: the number of items to send again; None for a whole request.
    delay_s: the delay before the retry, in seconds.
    """

    call: str
    attempt: int
    items: int | None
    fault: Fault
    delay_s: float


def log_retry(retry: Retry) -> None:
    """Log a retry."""
    _log.info(
        "%s: %s; attempt %d failed, retrying in %.1f s", retry.call, retry.fault, retry.attempt, retry.delay_s
    )


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The rules for retries after a RETRIABLE fault. UNKNOWN and REFUSED faults are not retried. Thread-safe.

    The delay doubles from ``base_delay_s`` up to ``max_delay_s``. Jitter reduces each delay by up to half, so
    that clients do not retry at the same time.

    A quota violation (one of ``quota_errors``) does not count as a failed attempt. The request is sent again
    until the system accepts it, or until the system has accepted nothing for ``quota_patience_s``.

    attempts: the maximum number of attempts, including the first attempt. If it is 1, nothing is retried, not
        even after a quota violation.
    jitter: returns random numbers from 0 to 1.
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
        if self.attempts < 1:
            raise ValueError("at least one attempt is needed")

    def whole(self, call: str, send: Callable[[], T]) -> T:
        """Call ``send``, with retries, and return its result. Raises the Fault of the last attempt."""
        attempts = Attempts(self, call)
        while True:
            try:
                return send()
            except Fault as fault:
                if not attempts.goes_on(None, fault):
                    raise


class Attempts:
    """Counts the attempts of one call."""

    def __init__(self, policy: RetryPolicy, call: str) -> None:
        self._policy = policy
        self._call = call
        self._sent = 0
        self._failed = 0
        self._delayed_s = 0.0
        self._items: int | None = None

    def goes_on(self, items: int | None, fault: Fault) -> bool:
        """Wait and return True if another attempt is allowed. Otherwise, return False immediately.

        items: the number of items that still have to be sent; None for a whole request.
        """
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
        if items != self._items:  # the system accepted some items in the meantime
            self._items, self._delayed_s = items, 0.0
        delay_s = fault.retry_after_s + self._policy.base_delay_s * (1 + self._policy.jitter())
        if self._policy.attempts == 1 or self._delayed_s + delay_s > self._policy.quota_patience_s:
            return None
        self._delayed_s += delay_s
        return delay_s


def build_retry_policy(attempts: int | None) -> RetryPolicy:
    """Return a policy that logs each retry. attempts: the maximum number; None for the default."""
    return RetryPolicy(on_retry=log_retry) if attempts is None else RetryPolicy(attempts, on_retry=log_retry)
