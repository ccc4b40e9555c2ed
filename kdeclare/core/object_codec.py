"""Objects of `core.objects` in snapshots of fleets: one row an object, which audits compare."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kdeclare.core.jsontypes import Json
from kdeclare.core.live_codec import LiveKey, LiveListing, LiveObject
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.secrets import UNTOLD, Secret

if TYPE_CHECKING:
    from kdeclare.core.objects import Fields, ObjectKind

_SECRET = {"secret": UNTOLD}
"""What a row keeps of a secret: that there is one."""


class ObjectCodec:
    """The `core.live_codec.LiveCodec` of a collector that reads objects.

    Secrets do not leave the process that read them, not even as hashes: an audit does not compare them.
    """

    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()

    def __init__(
        self,
        name: str,
        kinds: Sequence["ObjectKind"],
        read: Callable[[Connections], object],
        restore: Callable[[Mapping[LiveKey, "Fields"]], object],
        find_id: Callable[[LiveState], str | None] | None = None,
    ) -> None:
        """Keep the objects of these kinds.

        name: of the collector. read: reads all objects, as the collector's part of the live state; raises
        Fault. restore: makes this part again from the fields of some objects. find_id: see
            `core.collector.Collector`.
        """
        self.name = name
        self.sorts = frozenset(kind.name for kind in kinds)
        self._kinds = {kind.name: kind for kind in kinds}
        self._read, self._restore, self._find_id = read, restore, find_id

    def list_objects(self, connections: Connections) -> LiveListing:
        """See `core.live_codec.LiveCodec`."""
        live = LiveState(self._read(connections))
        return LiveListing(None, self._objects(live), self._find_id(live) if self._find_id else None)

    def _objects(self, live: LiveState) -> Iterator[LiveObject]:
        for kind in self._kinds.values():
            for name, fields in kind.read(live).items():
                body: Json = {key: _SECRET if isinstance(v, Secret) else v for key, v in fields.items()}
                yield LiveObject(LiveKey(kind.name, name), body)

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> object:
        """See `core.live_codec.LiveCodec`."""
        return self._restore({key: _restore_fields(json.loads(text)) for key, text in objects})

    def contains(self, key: LiveKey, live: LiveState) -> bool:
        """See `core.live_codec.LiveCodec`."""
        return key.key in self._kinds[key.sort].read(live)

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """None: an object that was created again with the same name is the same resource."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Every object."""
        return True


def _restore_fields(fields: Mapping[str, Json]) -> "Fields":
    return {key: Secret("", None, UNTOLD) if value == _SECRET else value for key, value in fields.items()}
