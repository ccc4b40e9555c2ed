"""Support for systems whose whole state is read in one request.

A provider of such a system defines the type of the response (`SystemObjects`) and the connection that returns
the response (`ObjectConnection`). For a kind, the provider then defines only the name and the spec.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from threading import Lock
from typing import Protocol

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import CollectResult, ExpectedObjects, Selection, Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, Outcome
from kdeclare.core.live.live_codec import LiveCodec, LiveKey, LiveListing, LiveObject
from kdeclare.core.operations.completion import Completion
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.send_permit import check_send_permit
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.objects import Fields, ObjectKind, ObjectSpec, ObjectWrite
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import UNKNOWN_HASH, Secret

OBJECT_EXISTS = "OBJECT_EXISTS"
"""The error name of a `Fault` for an object that already exists and cannot be created."""
OBJECT_MISSING = "OBJECT_MISSING"
"""The error name of a `Fault` for an object that does not exist and cannot be changed or deleted."""

_CAUSES = {OBJECT_EXISTS: FaultCause.EXISTS, OBJECT_MISSING: FaultCause.GONE_ALREADY}


@dataclass(frozen=True, slots=True)
class SystemObjects:
    """All objects of one system, as they were read. Each provider defines its own subclass.

    objects: the fields of each object. Secrets are wrapped by `hide`.
    system_id: the id to which states are bound; None if the system has no id.
    ongoing: the objects that the system is still working on.
    """

    objects: Mapping[ResourceId, Fields]
    system_id: str | None = None
    ongoing: frozenset[ResourceId] = field(default=frozenset())
    _by_kind: Mapping[str, Mapping[str, Fields]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Computed in advance, because planning calls `get_kind` for each resource.
        by_kind: dict[str, dict[str, Fields]] = {}
        for id_, fields in self.objects.items():
            by_kind.setdefault(id_.kind, {})[id_.name] = fields
        object.__setattr__(self, "_by_kind", by_kind)

    def get_kind(self, kind: str) -> Mapping[str, Fields]:
        """Return the objects of one kind by name; empty if there are no objects of this kind."""
        return self._by_kind.get(kind, {})


class ObjectConnection(Protocol):
    """A connection to a system whose whole state is read in one request."""

    def read(self) -> SystemObjects:
        """Return the whole state, as the provider's own subclass of `SystemObjects`. Raises Fault."""

    def write(self, writes: Sequence[ObjectWrite], *, validate_only: bool) -> Sequence[Outcome]:
        """Execute or validate each write independently, and return an outcome for each write. Raises Fault.

        An outcome has the error `OBJECT_EXISTS` if the object to create exists, and `OBJECT_MISSING` if the
        object to change or delete does not exist.
        """


@dataclass(frozen=True, slots=True)
class ObjectSystem:
    """The system that the kinds and the collector of one provider read and write.

    name: the name of the collector.
    connection: the class of the connection to the system.
    objects: the provider's subclass of `SystemObjects`.
    is_thread_safe: whether several threads can safely read and write at the same time. Runs send requests
        from several threads. By default, only one thread at a time reads or writes, because two concurrent
        read-modify-write cycles would lose one of the changes.
    """

    name: str
    connection: type[ObjectConnection]
    objects: type[SystemObjects]
    is_thread_safe: bool = False
    _turn: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def read(self, connections: Connections) -> SystemObjects:
        """Read the whole state of the system. Raises Fault."""
        with self._acquire_turn():
            return connections.get(self.connection).read()

    def write(
        self, connections: Connections, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> Sequence[Outcome]:
        """See `ObjectConnection`."""
        connection = connections.get(self.connection)
        with self._acquire_turn():
            if not validate_only:
                check_send_permit()  # after waiting for other threads, which can take a long time
            return connection.write(writes, validate_only=validate_only)

    def _acquire_turn(self) -> AbstractContextManager[object]:
        return nullcontext() if self.is_thread_safe else self._turn


@dataclass(frozen=True, slots=True)
class _AllObjects:
    """The selection of all objects of a system."""

    system: ObjectSystem

    def merge(self, others: Sequence["_AllObjects"]) -> "_AllObjects":
        """See `Selection`."""
        return self


class SystemObjectKind(ObjectKind):
    """A kind of objects in an `ObjectSystem`."""

    def __init__(
        self,
        system: ObjectSystem,
        name: str,
        spec: type[ObjectSpec],
        references: Mapping[str, str] | None = None,
        completion: Completion | None = None,
    ) -> None:
        """See `ObjectKind`."""
        super().__init__(name, spec, references, completion)
        self._system = system

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """See `Kind`."""
        return (_AllObjects(self._system),)

    def read(self, live: LiveState) -> Mapping[str, Fields]:
        """See `ObjectKind`."""
        part = live.find(self._system.objects)
        return part.get_kind(self.name) if part is not None else {}

    def write(
        self, connections: Connections, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> Sequence[Outcome]:
        """See `ObjectKind`."""
        return self._system.write(connections, writes, validate_only=validate_only)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """See `OperationType`."""
        return Explanation(_CAUSES.get(fault.error, FaultCause.OTHER))


class ObjectCollector:
    """The collector of an `ObjectSystem`. See `AnyCollector`."""

    def __init__(self, system: ObjectSystem, kinds: Sequence[ObjectKind]) -> None:
        """Create a collector that reads the system and stores the objects of these kinds in snapshots."""
        self._system = system
        self.codec: LiveCodec | None = ObjectCodec(
            system.name,
            kinds,
            read=system.read,
            restore=lambda objects: system.objects({ResourceId(*key): f for key, f in objects.items()}),
            find_id=self.identify,
        )

    def collect(self, connections: Connections, selections: Iterable[Selection]) -> object | None:
        """See `AnyCollector`."""
        return self._system.read(connections) if self.reads(selections) else None

    def collect_expected(
        self, connections: Connections, selections: Iterable[Selection], expected: ExpectedObjects
    ) -> CollectResult | None:
        """See `AnyCollector`. A system that is read in one request shows all its objects immediately."""
        part = self.collect(connections, selections)
        return None if part is None else CollectResult(part)

    def reads(self, selections: Iterable[Selection]) -> bool:
        """See `AnyCollector`."""
        return _AllObjects(self._system) in selections

    def identify(self, live: LiveState) -> str | None:
        """See `AnyCollector`."""
        part = live.find(self._system.objects)
        return part.system_id if part is not None else None


_SECRET_MARK = {"secret": UNKNOWN_HASH}
"""The value that snapshots store in place of a secret. This value shows only that a secret is set."""


class ObjectCodec:
    """The `LiveCodec` of a collector that reads objects.

    Secrets never leave the process that read the objects, not even as hashes. Audits therefore do not compare
    secrets.
    """

    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()

    def __init__(
        self,
        name: str,
        kinds: Sequence[ObjectKind],
        read: Callable[[Connections], object],
        restore: Callable[[Mapping[LiveKey, Fields]], object],
        find_id: Callable[[LiveState], str | None] | None = None,
    ) -> None:
        """Create a codec for the objects of these kinds.

        name: the name of the collector. read: reads all objects and returns the value that the collector adds
            to the live state; raises Fault. restore: recreates this value from the fields of objects.
        find_id: see `Collector`.
        """
        self.name = name
        self.sorts = frozenset(kind.name for kind in kinds)
        self._kinds = {kind.name: kind for kind in kinds}
        self._read, self._restore, self._find_id = read, restore, find_id

    def list_objects(self, connections: Connections) -> LiveListing:
        """See `LiveCodec`."""
        live = LiveState(self._read(connections))
        return LiveListing(
            None, self._list_live_objects(live), self._find_id(live) if self._find_id else None
        )

    def _list_live_objects(self, live: LiveState) -> Iterator[LiveObject]:
        for kind in self._kinds.values():
            for name, fields in kind.read(live).items():
                body: JsonValue = {
                    key: _SECRET_MARK if isinstance(v, Secret) else v for key, v in fields.items()
                }
                yield LiveObject(LiveKey(kind.name, name), body)

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> object:
        """See `LiveCodec`."""
        return self._restore({key: _restore_fields(json.loads(text)) for key, text in objects})

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """See `LiveCodec`."""
        return key.key in self._kinds[key.sort].read(live)

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None: an object that is created again under the same name counts as the same resource."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return True, so that audits report every undeclared object."""
        return True


def _restore_fields(fields: Mapping[str, JsonValue]) -> Fields:
    return {
        key: Secret("", None, UNKNOWN_HASH) if value == _SECRET_MARK else value
        for key, value in fields.items()
    }
