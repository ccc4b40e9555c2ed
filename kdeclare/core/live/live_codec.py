"""Live state as plain data: what a collector brings so that snapshots of fleets keep it.

A snapshot of a fleet keeps every live object as one row. An audit joins these rows with declared resources on
(cluster, sort, key), and gives what belongs together to `Kind.diff`, the same function that plans call.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.parts import Connections, LiveState


class LiveKey(NamedTuple):
    """Names one live object of a system.

    sort: what sort of object it is; belongs to one collector. Give it the name of the kind that declares such
    objects, because findings about objects that nobody declared are reported under it.
    """

    sort: str
    key: str


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """What is so of a live object, as hashes (`hash_fact`).

    keys: the parts of it that are unmanaged unless they are declared or owned.
    """

    has: Sequence[int]
    keys: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """When a live object is as declared, in terms of its `LiveFacts`: a quick test before the diff.

    need, forbid: facts that it must have, and must not have. keys: those that are declared. gone: of all
    other keys, those that the diff has something to say about even where unmanaged parts are of no interest;
    None where it is every one.
    """

    need: Sequence[int]
    forbid: Sequence[int] = ()
    keys: Sequence[int] = ()
    gone: Sequence[int] | None = ()


def hash_fact(*parts: str) -> int:
    """Return 64 bits, signed as Spark's BIGINT is; lengths keep apart what reads the same when joined."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class LiveObject:
    """One live object as a snapshot keeps it.

    body: what `LiveCodec.decode` needs of it; None where it cannot be read, for the reason ``error``.
    facts: None where the diff has to tell whether it is as declared.
    group: what objects that nobody declared are counted by, where there are too many of them to list each.
    """

    key: LiveKey
    body: JsonValue = None
    error: str | None = None
    facts: LiveFacts | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class LiveListing:
    """All live objects of one collector.

    system: what they share (members, versions), for `LiveCodec.decode`. If it has a ``version``, people are
    shown it. system_id: the id of the system; None where it has none.
    """

    system: JsonValue
    objects: Iterator[LiveObject]
    system_id: str | None = None


class LiveCodec(Protocol):
    """The live state of one collector as plain data. Everything but `list_objects` is pure.

    name: of the collector. sorts: of its objects. identifies_system: whether a cluster of a fleet is the
    system that it reads; at most one collector does. groups: whether objects can have a `LiveObject.group`.
    context: the parts of the `PlanContext` that its kinds get where one resource is compared by itself.
    """

    name: str
    sorts: frozenset[str]
    identifies_system: bool
    groups: bool
    context: tuple[object, ...]

    def __hash__(self) -> int:
        """Return the hash of the object itself, as every object has it."""
        return id(self)

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all there is. Raises Fault; once there is a listing, its objects say what cannot be read."""

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> object:
        """Return the part of the `LiveState` that these objects are, from JSON texts.

        The diff of a resource is the same on this part as on what the collector itself reads.
        """

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Whether there is such an object."""

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return what tells an object from a later one of the same key; None where nothing does."""

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Whether an object that is neither declared nor owned is a finding. body: its JSON text."""


@runtime_checkable
class CountsObjects(Protocol):
    """A codec that says what the objects are called that summaries of fleets count.

    Of any other codec, all objects are counted, in the words of their kinds.
    nouns: of the sorts that are counted, in the singular and the plural.
    internal_marker: a text that is in the bodies of those objects only that the system keeps for itself; None
    where it has no such objects.
    """

    nouns: Mapping[str, tuple[str, str]]
    internal_marker: str | None


@runtime_checkable
class DescribesFields(Protocol):
    """A codec that says how histories show the fields of its objects.

    Of any other codec, they are the entries of the bodies, by their names.
    """

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """Return the fields of an object by the paths that plans have for them."""

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return what people read in place of a path; None where that is the path itself."""
