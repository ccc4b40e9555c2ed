"""The state: what kdeclare remembers between runs."""

from collections.abc import Mapping
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.owned_record import OwnedRecord

PendingCleanup = Mapping[str, JsonValue]
"""What runs left behind and later runs remove, in sections that operation types read and write.

If a provider is not installed, its section stays unchanged.
"""


@dataclass(frozen=True, slots=True)
class State:
    """The owned resources of one project in one environment.

    lineage: created with the first write. A state that was recreated from scratch has a new lineage.
    serial: increases by one with every write, and therefore with every run that changes anything.
    resources: the ownership records (what was last applied), by resource id as a string.
    """

    lineage: str
    serial: int
    cluster_id: str
    resources: Mapping[str, OwnedRecord] = field(default_factory=dict)
    pending_cleanup: PendingCleanup = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockInfo:
    """The process that holds the lock.

    This value is only for messages. The lock itself is a lock of the operating system.
    """

    schema_name = "LockDocument"

    who: str  # user@host
    pid: int
    what: str  # the command
    since: str  # UTC, ISO 8601
