"""Removing what runs have left in a system for the sake of work that is over by now."""

from dataclasses import dataclass

from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.state import PendingCleanup


@dataclass(frozen=True, slots=True)
class CleanupRequest:
    """What a provider is asked.

    pending: what is to be removed, of all providers.
    patient: do nothing before all work is over: whoever looks again and again would make a run of every part
        that ends.
    """

    connections: Connections
    pending: PendingCleanup
    options: PlanOptions
    patient: bool = False


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What one provider can remove by now.

    system_id: of the system that was looked at.
    operations: what removes it. ongoing: names of the work that is not over.
    pending: what is to be removed, without work that has turned out to be over.
    """

    system_id: str
    operations: tuple[Operation, ...]
    ongoing: tuple[str, ...]
    pending: PendingCleanup
