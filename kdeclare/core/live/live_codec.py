"""Live state as plain data, so that fleet snapshots can store it.

A fleet snapshot is a table with one row per live object. An audit joins this table with the declared
resources on the columns cluster, kind and name. The audit passes each matching pair to `Kind.diff`, which
plans also use.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.parts import Connections, LiveState


class LiveKey(NamedTuple):
    """The key of one live object of a system.

    sort: the type of object. Each type belongs to one collector. Use the name of the kind that declares such
    objects, because audits report undeclared objects under this name.
    """

    sort: str
    key: str


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """Hashes (`hash_fact`) of the facts about a live object.

    has: the facts of the object. keys: hashes of the keys that are set on the object, such as config keys. A
        key is unmanaged unless a resource declares or owns it.
    """

    has: Sequence[int]
    keys: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """Conditions for a live object. If the object meets all of them, it matches its declared resource.

    need: facts that the object must have. forbid: facts that the object must not have.
    keys: the declared keys. In an audit that reports unmanaged keys, the object must not have any other key.
    gone: keys that the object must not have in an audit that does not report unmanaged keys. None means that
        such an audit must always compare the object.
    """

    need: Sequence[int]
    forbid: Sequence[int] = ()
    keys: Sequence[int] = ()
    gone: Sequence[int] | None = ()


def hash_fact(*parts: str) -> int:
    """Hash the strings that describe a fact. The result is a signed 64-bit integer (Spark's BIGINT)."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class LiveObject:
    """One live object as a snapshot stores it.

    body: the input of `LiveCodec.decode`; None if the object could not be read.
    error: the reason why the object could not be read.
    facts: the facts of the object; None if only the diff can decide whether the object matches its
        declaration.
    group: the name under which this object is counted if there are too many undeclared objects to list.
    """

    key: LiveKey
    body: JsonValue = None
    error: str | None = None
    facts: LiveFacts | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """A part of a system that could not be read, such as one of several named endpoints.

    The objects of such a part can be missing from a listing, or be incomplete. Audits therefore do not report
    earlier findings about undeclared objects of the part as fixed, and treat changes to its objects as
    unknown. For declared and owned resources, `Kind.diff` reports `ENDPOINT_UNREACHABLE`.

    sort: the type of the objects. A part with objects of several types is listed once for each type.
    prefix: the string with which the keys and groups of these objects begin; no key consists of the prefix
        alone. Empty if keys do not show to which part an object belongs. Any object of the type can then
        belong to the part.
    reason: why the part could not be read, as a sentence.
    """

    sort: str
    prefix: str
    reason: str


@dataclass(frozen=True, slots=True)
class LiveListing:
    """All live objects of one collector.

    system: data that all objects share, such as members and versions, for `LiveCodec.decode`. If the data has
        the key ``version``, its value is displayed.
    system_id: the id of the system; None if the system has no id.
    unread: the parts of the system that could not be read. If nothing could be read, `LiveCodec.list_objects`
        raises Fault instead.
    """

    system: JsonValue
    objects: Iterator[LiveObject]
    system_id: str | None = None
    unread: Sequence[UnreadPart] = ()


class LiveCodec(Protocol):
    """Converts the live state of one collector to plain data and back. Only `list_objects` sends requests.

    name: the name of the collector.
    sorts: the types of objects that the collector reads.
    identifies_system: whether the collector reads the clusters of a fleet. At most one collector does.
    groups: whether objects can have a `LiveObject.group`.
    context: the parts of the `PlanContext` for the diff of a single resource.
    """

    name: str
    sorts: frozenset[str]
    identifies_system: bool
    groups: bool
    context: tuple[object, ...]

    def __hash__(self) -> int:
        return id(self)

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all live objects. Raises Fault if nothing can be read.

        An object that cannot be read has an ``error``. Parts that cannot be read are in ``unread``.
        """

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> object:
        """Convert objects from JSON to the part of the `LiveState` that contains them.

        The diff of a resource has the same result with this part as with the part that the collector reads.
        """

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Whether the object exists. Raises Fault if this is unknown, because a part was not read."""

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return an id that distinguishes the object from later objects with the same key.

        Return None if the object has no such id.
        """

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Whether audits report the object if it is neither declared nor owned. body: the object as JSON."""


@runtime_checkable
class CountsObjects(Protocol):
    """A codec that determines which types of objects fleet summaries count, and the names for these types.

    For all other codecs, summaries count every object, under the display name of its kind.

    nouns: the singular and the plural display name of each type of object that is counted.
    internal_marker: a string that occurs only in the bodies of the system's internal objects; None if the
        system has no internal objects.
    """

    nouns: Mapping[str, tuple[str, str]]
    internal_marker: str | None


@runtime_checkable
class DescribesFields(Protocol):
    """A codec that defines how the history of a fleet shows the fields of objects.

    For all other codecs, the history shows the top-level fields of each object.
    """

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """Return the fields of an object by path.

        Plans use the same paths, unless the codec is a `HasOwnPaths` codec.
        """

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return the name to display instead of a path; None to display the path itself."""


@runtime_checkable
class HasOwnPaths(Protocol):
    """A codec whose objects have field paths that differ from those in plans.

    Because the paths differ, the history of a fleet cannot determine from a plan which fields a run changed.

    has_own_paths: always True.
    """

    has_own_paths: bool
