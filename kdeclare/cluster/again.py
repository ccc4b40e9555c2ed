"""What may work the second time is tried a second time: how often, and after how long."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kdeclare.cluster.port import Fault, FaultKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """One retry that is about to be made.

    call: the method of the port; attempt: the number of the attempt that failed, from 1;
    items: how many are sent again, None for a whole request; delay_s: how long it waits before.
    """

    call: str
    attempt: int
    items: int | None
    fault: Fault
    delay_s: float


@dataclass(frozen=True, slots=True)
class Again:
    """Tries again after a RETRIABLE fault; UNKNOWN and REFUSED ones it lets pass.

    Waits double from ``base_delay_s`` up to ``max_delay_s``, each cut by up to a half at random, so that
    many clients do not come back at the same time. attempts: counts the first one; jitter: gives numbers
    from 0 to 1. Safe to use from several threads.
    """

    attempts: int = 6
    base_delay_s: float = 0.1
    max_delay_s: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    on_retry: Callable[[Retry], None] = lambda _: None
    jitter: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        """Raises ValueError where nothing would ever be tried."""
        if self.attempts < 1:
            raise ValueError("at least one attempt is needed")

    def whole(self, call: str, send: Callable[[], T]) -> T:
        """What ``send`` gives in the end. Raises its last Fault."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return send()
            except Fault as fault:
                if not self.goes_on(call, attempt, None, fault):
                    raise

    def goes_on(self, call: str, attempt: int, items: int | None, fault: Fault) -> bool:
        """Whether to try once more after attempt number ``attempt``; if so, after waiting."""
        if fault.kind is not FaultKind.RETRIABLE or attempt >= self.attempts:
            return False
        delay_s = min(self.max_delay_s, self.base_delay_s * 2 ** (attempt - 1))
        delay_s *= 1 - self.jitter() / 2
        self.on_retry(Retry(call, attempt, items, fault, delay_s))
        self.sleep(delay_s)
        return True
