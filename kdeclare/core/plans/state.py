"""The state: what kdeclare remembers between runs."""

from collections.abc import Mapping
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.owned_record import OwnedRecord

PendingCleanup = Mapping[str, JsonValue]
"""What runs have left to be removed later, in sections that operation types read and write.

The section of a provider that is not installed stays unchanged.
"""


@dataclass(frozen=True, slots=True)
class State:
    """The owned resources of one project in one environment.

    lineage: created with the first write; a state that was started again from scratch has a different one.
    serial: increases by one with every write, and so with every run that has changed anything.
    resources: by resource id (as text), what was last applied (the kind's ownership record).
    """

    lineage: str
    serial: int
    cluster_id: str
    resources: Mapping[str, OwnedRecord] = field(default_factory=dict)
    pending_cleanup: PendingCleanup = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockInfo:
    """The holder of the lock.

    For messages only: the lock itself is an operating system lock.
    """

    schema_name = "LockDocument"

    who: str  # user@host
    pid: int
    what: str  # the command
    since: str  # UTC, ISO 8601
