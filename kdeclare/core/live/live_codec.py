"""Live state as plain data, so that fleet snapshots can store it.

A fleet snapshot stores each live object as one row. An audit joins these rows with declared resources on
(cluster, sort, key) and passes matching pairs to `Kind.diff`, the same function that plans use.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.parts import Connections, LiveState


class LiveKey(NamedTuple):
    """Identifies one live object of a system.

    sort: the type of object; each type belongs to one collector. Use the name of the kind that declares such
    objects, because findings about undeclared objects are reported under this name.
    """

    sort: str
    key: str


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """The facts about a live object, as hashes (`hash_fact`).

    keys: hashes of the parts of the object that are unmanaged unless a resource declares or owns them.
    """

    has: Sequence[int]
    keys: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """The facts by which a live object matches its declaration. They are compared first to avoid a full diff.

    need: facts that the object must have. forbid: facts that the object must not have. keys: the declared
        keys. gone: undeclared keys that the diff reports even if unmanaged parts are not requested; None
        means all undeclared keys.
    """

    need: Sequence[int]
    forbid: Sequence[int] = ()
    keys: Sequence[int] = ()
    gone: Sequence[int] | None = ()


def hash_fact(*parts: str) -> int:
    """Return a hash of the parts as a signed 64-bit integer, which fits Spark's BIGINT."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class LiveObject:
    """One live object as a snapshot stores it.

    body: the input of `LiveCodec.decode`; None if the object cannot be read, for the reason ``error``.
    facts: None if only the diff can decide whether the object matches its declaration.
    group: the name under which this object is counted if there are too many undeclared objects to list.
    """

    key: LiveKey
    body: JsonValue = None
    error: str | None = None
    facts: LiveFacts | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class LiveListing:
    """All live objects of one collector.

    system: data that the objects share (members, versions), for `LiveCodec.decode`. Its ``version``, if
        present, is displayed. system_id: the id of the system; None if it has none.
    """

    system: JsonValue
    objects: Iterator[LiveObject]
    system_id: str | None = None


class LiveCodec(Protocol):
    """Converts the live state of one collector to plain data and back. Only `list_objects` sends requests.

    name: the name of the collector. sorts: the types of its objects. identifies_system: whether a cluster of
    a fleet is the system that this collector reads; this is true for at most one collector. groups: whether
    objects can have a `LiveObject.group`. context: the parts of the `PlanContext` that its kinds receive when
    one resource is compared on its own.
    """

    name: str
    sorts: frozenset[str]
    identifies_system: bool
    groups: bool
    context: tuple[object, ...]

    def __hash__(self) -> int:
        """Return the identity hash of the object."""
        return id(self)

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all live objects. Raises Fault. An object that cannot be read has an ``error``."""

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> object:
        """Return the part of the `LiveState` that contains these objects, given as JSON.

        The diff of a resource is the same on this part as on what the collector itself reads.
        """

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Whether the object exists."""

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return an id that a later object with the same key does not have; None if there is no such id."""

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Whether audits report the object if it is neither declared nor owned. body: the object as JSON."""


@runtime_checkable
class CountsObjects(Protocol):
    """A codec that chooses which types of objects fleet summaries count, and how summaries name them.

    If a codec is not of this class, all its objects are counted under the display names of their kinds.
    nouns: the singular and plural display name of each type of object that is counted.
    internal_marker: a string that occurs only in the bodies of the system's internal objects; None if the
        system has no internal objects.
    """

    nouns: Mapping[str, tuple[str, str]]
    internal_marker: str | None


@runtime_checkable
class DescribesFields(Protocol):
    """A codec that defines how the history of a fleet shows the fields of objects.

    If a codec is not of this class, the history shows each entry of a body under its own name.
    """

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """Return the fields of an object by the paths that plans use for them."""

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return the name to display instead of a path; None if the path itself is displayed."""
