"""Acknowledged writes that a system does not show yet."""

from dataclasses import dataclass
from datetime import datetime

from kdeclare.core.operations import Operation


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """An acknowledged write that members of the system may not show yet.

    elements: those of the operation's view that it wrote, and nobody has overwritten since.
    until: from then on that it is not shown is drift.
    """

    run_id: str
    operation: Operation
    elements: frozenset[str]
    until: datetime
