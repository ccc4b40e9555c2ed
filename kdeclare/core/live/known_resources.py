"""Codecs for systems that can be read only with data from a project, such as addresses in manifests."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.live_codec import LiveListing
from kdeclare.core.parts import Connections
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord


@dataclass(frozen=True, slots=True)
class KnownResource:
    """A resource that a project declares or owns.

    body: the declared body, with hashed secrets; None if the resource is not declared.
    owned: the ownership record; None if the resource is not owned.
    """

    id: ResourceId
    body: object | None
    owned: OwnedRecord | None


FindKnownResources = Callable[[Collection[str]], Sequence[KnownResource]]
"""A function that returns the declared and owned resources of some kinds. Raises KdeclareError."""


@runtime_checkable
class ListsKnownObjects(Protocol):
    """A codec that cannot list all live objects, because only manifests and states contain their locations.

    `LiveCodec.list_objects` then returns no objects. The types of the objects are the names of the kinds
    whose resources contain these locations.
    """

    def list_known_objects(self, connections: Connections, resources: Sequence[KnownResource]) -> LiveListing:
        """Read the live objects of these resources. Raises Fault. See `LiveCodec.list_objects`."""


def find_no_resources(kinds: Collection[str]) -> Sequence[KnownResource]:
    """Return no resources, for systems that are read without a project. See `FindKnownResources`."""
    return ()
