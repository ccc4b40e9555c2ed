"""What kdeclare remembers between runs."""

from collections.abc import Mapping
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.owned_record import OwnedRecord

PendingCleanup = Mapping[str, JsonValue]
"""What runs have left to be removed later, in sections that operation types read and write.

A section of a provider that is not installed stays as it is.
"""


@dataclass(frozen=True, slots=True)
class State:
    """The owned resources of one project in one environment.

    lineage: made once, with the first write; a state that was started anew has another one.
    serial: goes up by one with every write, and so with every run that has done anything.
    resources: resource id as text to what was last applied (a kind's ``owned`` record).
    """

    lineage: str
    serial: int
    cluster_id: str
    resources: Mapping[str, OwnedRecord] = field(default_factory=dict)
    pending_cleanup: PendingCleanup = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockInfo:
    """Who holds the lock.

    For messages only: the lock itself is the operating system's.
    """

    schema_name = "LockDocument"

    who: str  # user@host
    pid: int
    what: str  # the command
    since: str  # UTC, ISO 8601
