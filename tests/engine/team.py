"""A team: several members with one shared state, one in-memory cluster and one simulated time."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.memory_objects import MemoryObjects
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.world import TestClock, World
from tests.jsontypes import untyped

DURATION_S = 60.0
"""The duration of the team's leases, in seconds."""


class RenewingClock(TestClock):
    """A simulated clock. Processes that are not stopped renew their leases while time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[SharedStore] = []

    def sleep(self, seconds: float) -> None:
        while seconds > 0:
            super().sleep(min(seconds, DURATION_S / 4))
            seconds -= DURATION_S / 4
            for store in self.running:
                store._lease.renew()


@dataclass
class Team:
    """Opens worlds for the members of a team."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    clock: RenewingClock = field(default_factory=RenewingClock)

    @property
    def timing(self) -> LeaseTiming:
        """The timing of leases by the team's clock."""
        clock = self.clock
        return LeaseTiming(DURATION_S, clock.monotonic, clock.now, clock.sleep, starts_renewals=False)

    def open_world(
        self,
        elsewhere: bool = False,
        open_objects: Callable[[MemoryObjects], ConditionalObjects] = lambda objects: objects,
    ) -> World:
        """Return the world of a member who runs from now on.

        elsewhere: whether the member has a client of its own, which does not have the faults of the others.
        open_objects: wraps the storage, for example to lose requests of this member.
        """
        store = SharedStore(lambda: open_objects(self.objects), self.timing)
        self.clock.running.append(store)
        cluster = self.cluster.elsewhere() if elsewhere else self.cluster
        return World(store=untyped(store), cluster=cluster, clock=self.clock)
