"""Members of a system that trail the others: how long they are waited for, and for which writes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from kdeclare.core.operations import Operation
from kdeclare.core.progress import Progress, quietly

VISIBILITY_TIMEOUT_S = 120.0
"""How long kdeclare waits by default for a system to show what exists."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for members of a system that trail the others, and how to tell people about it."""

    limit_s: float = VISIBILITY_TIMEOUT_S
    progress: Progress = quietly
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def less(self, seconds: float) -> "Patience":
        """What is left after ``seconds`` of waiting for the same."""
        return replace(self, limit_s=max(0.0, self.limit_s - seconds))


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """An acknowledged write that members of the system may not show yet.

    elements: the elements of the operation's view that it wrote and that no later write has replaced.
    until: when the wait ends; a write that is still not shown then is reported as drift.
    """

    run_id: str
    operation: Operation
    elements: frozenset[str]
    until: datetime
