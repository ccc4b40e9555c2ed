"""Live objects that have not been used for some time. Audits can report these objects."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import Connections


@dataclass(frozen=True, slots=True)
class UnusedObject:
    """A live object that has not been used for a certain time.

    message: why the object counts as unused, as sentences. It must not change from audit to audit while the
        object is not used, so it contains dates instead of ages.
    records: the number of records; None if unknown.
    size: the size in bytes; None if unknown.
    newest_ms: the time of the newest record in milliseconds since 1970; None if there are no records.
    readers: the number of inactive readers that the system still remembers.
    """

    key: LiveKey
    message: str
    records: int | None = None
    size: int | None = None
    newest_ms: int | None = None
    readers: int = 0


@dataclass(frozen=True, slots=True)
class UnusedListing:
    """The unused objects of a system.

    undetermined: the objects whose usage is unknown, by reason. A reason is a clause without a period.
    warnings: sentences about problems that make the whole list less reliable.
    """

    unused: Sequence[UnusedObject]
    undetermined: Mapping[str, Sequence[LiveKey]]
    warnings: Sequence[str] = ()


@runtime_checkable
class ListsUnusedObjects(Protocol):
    """A codec that can determine which live objects are unused.

    Fleet commands search for unused objects only if the fleet file requests this.

    unused_sorts: the types of these objects.
    """

    unused_sorts: frozenset[str]

    def list_unused(self, connections: Connections, unused_for_s: float, read_at: datetime) -> UnusedListing:
        """Return the objects that have been unused for at least ``unused_for_s``. Raises Fault.

        An object is returned only if it is certainly unused. unused_for_s: the minimum time without use, in
        seconds. read_at: the current time.
        """
