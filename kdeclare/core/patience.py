"""How long to wait for the members of a system to show what exists."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

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
