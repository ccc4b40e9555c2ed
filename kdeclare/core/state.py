"""What kdeclare remembers between runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdeclare.core.jsontypes import Json

Entries = Mapping[str, Mapping[str, Json]]
"""Throttle entries: config resource as text (``BROKER/1``, ``TOPIC/orders``) to key to what is there.

A rate is a text (bytes a second), or several where it is not known which of them took effect. A list is
{elements: [``partition:broker``, …], fresh}; ``fresh`` says that nothing was set before.
"""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is still to be done once moves that go on in the cluster are over.

    throttles: what kdeclare has put there and has not taken away yet.
    elections: partitions (``topic-n``) whose preferred leader is to be elected, with that leader.
    moves: partitions that kdeclare has begun to move, and left to the cluster.
    """

    throttles: Entries = field(default_factory=dict)
    elections: Mapping[str, int] = field(default_factory=dict)
    moves: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.throttles or self.elections or self.moves)


@dataclass(frozen=True, slots=True)
class State:
    """The owned resources of one project in one environment.

    lineage: made once, with the first write; a state that was started anew has another one.
    serial: goes up by one with every write, and so with every run that has done anything.
    resources: resource id as text to what was last applied (a kind's ``owned`` record).
    leftovers: what runs have left to be tidied up.
    """

    lineage: str
    serial: int
    cluster_id: str
    resources: Mapping[str, Json] = field(default_factory=dict)
    leftovers: Leftovers = Leftovers()


@dataclass(frozen=True, slots=True)
class LockInfo:
    """Who holds the lock; for messages only, the lock itself is the operating system's."""

    who: str  # user@host
    pid: int
    what: str  # the command
    since: str  # UTC, ISO 8601
