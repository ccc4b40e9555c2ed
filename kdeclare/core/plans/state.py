"""The state, which kdeclare stores between runs."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.endpoints import Endpoints
from kdeclare.core.resources.owned_record import OwnedRecord

PendingCleanup = Mapping[str, JsonValue]
"""Temporary settings that earlier runs left behind and that a later run removes, such as throttles.

Each operation type reads and writes its own sections of this mapping. The sections of a provider that is not
installed stay unchanged.
"""


@dataclass(frozen=True, slots=True)
class State:
    """The owned resources of one project in one environment.

    lineage: an id that is created when the state is first written. A state that is recreated from scratch
        gets a new lineage.
    serial: increases with every write, and therefore with every run that changes anything.
    resources: the ownership records, by resource id as a string. A record contains the fields that were last
        applied.
    endpoints: the ids of the named endpoints that runs have changed; see `Endpoints`.
    """

    lineage: str
    serial: int
    cluster_id: str
    resources: Mapping[str, OwnedRecord] = field(default_factory=dict)
    pending_cleanup: PendingCleanup = field(default_factory=dict)
    endpoints: Endpoints = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LockInfo:
    """The process that holds the lock of a state.

    This value is only displayed in messages. The actual lock is a file lock of the operating system, or the
    lease of a shared state.
    """

    schema_name = "LockDocument"

    who: str  # user@host
    pid: int
    what: str  # the command
    since: str  # UTC, ISO 8601
    renewed: Annotated[
        str | None, Field(description="When the lease was last renewed; null for a local state.")
    ] = None
