"""Removing what runs left in a system for work that is over by now."""

from dataclasses import dataclass

from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.state import PendingCleanup


@dataclass(frozen=True, slots=True)
class CleanupRequest:
    """What a provider is asked.

    pending: what is to be removed, for all providers.
    patient: remove nothing until all work is over, so that a command that polls does not start a run each
        time a part of the work ends.
    """

    connections: Connections
    pending: PendingCleanup
    options: PlanOptions
    patient: bool = False


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What one provider can remove by now.

    operations: what removes it. ongoing: names of the work that is not over.
    pending: what is still to be removed; work that turned out to be over is no longer in it.
    """

    operations: tuple[Operation, ...]
    ongoing: tuple[str, ...]
    pending: PendingCleanup
