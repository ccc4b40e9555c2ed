"""The interface of storage backends for shared states: named objects with conditional writes.

Everything that a team shares (the state, journals, plans, the lease) is an object with a key. Each write
names the version that it replaces, so that two processes never overwrite each other's changes. There are
implementations for object storage, Kafka topics and git branches.
"""

from collections.abc import Iterable, Mapping
from typing import NewType, Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass

ObjectVersion = NewType("ObjectVersion", str)
"""Identifies one write of one object. Every write creates a new version, even if the bytes are equal."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The content of an object, and the version that a conditional write has to name."""

    data: bytes
    version: ObjectVersion


class ObjectConflict(Exception):
    """A conditional write was refused, because the object exists or has a different version.

    After a request without a response, the stored object might be the one that this process wrote.
    `write_certainly` checks this.
    """

    def __init__(self, key: str) -> None:
        """Report a conflict at ``key``."""
        super().__init__(f"'{key}' was written by another process")
        self.key = key


class ConditionalObjects(Protocol):
    """The objects of one project in one environment. Thread-safe.

    Keys are relative paths, such as ``journals/20261128T101500Z-1a2b3c4d/000001.json``.

    Reads are linearizable: they return the last write that any process completed. A write is durable when the
    method returns. All methods raise KdeclareError if the storage does not respond, refuses access, or is not
    suitable.
    """

    @property
    def max_object_bytes(self) -> int:
        """The largest object that `create` and `replace` accept, in bytes."""

    def get(self, key: str) -> StoredObject | None:
        """Return an object; None if it does not exist."""

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Return the keys that start with ``prefix``, sorted."""

    def create(self, key: str, data: bytes) -> ObjectVersion:
        """Write a new object. Raises ObjectConflict, and writes nothing, if the key exists."""

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """Replace ``version`` of an object. Raises ObjectConflict if another version is stored."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects. Keys that do not exist are ignored."""

    def get_location(self, key: str) -> str:
        """Return where an object is, for messages: a URL, or a sentence fragment."""

    def close(self) -> None:
        """Release connections. A second call has no effect."""


@runtime_checkable
class ListsProjects(Protocol):
    """A storage backend that can list all projects with objects at the same location.

    This is optional, but without it, plans cannot protect the resources of other projects.
    """

    def list_projects(self) -> tuple[tuple[str, str], ...]:
        """Return the project and the environment of each state, sorted.

        Raises KdeclareError if the storage does not respond or refuses access.
        """


def write_certainly(
    objects: ConditionalObjects, key: str, data: bytes, version: ObjectVersion | None
) -> ObjectVersion:
    """Replace ``version`` of an object, or create the object if ``version`` is None.

    If a response is lost, the repeated request conflicts with this process's own write. This function
    recognizes that write by ``data``, so no other process may write the same bytes. Raises ObjectConflict if
    another process wrote the object.
    """
    try:
        return objects.create(key, data) if version is None else objects.replace(key, data, version)
    except ObjectConflict:
        stored = objects.get(key)
        if stored is None or stored.data != data:
            raise
        return stored.version


def create_once(objects: ConditionalObjects, contents: Mapping[str, bytes]) -> None:
    """Write objects whose keys are derived from their content. Existing objects are not changed."""
    for key, data in contents.items():
        try:
            objects.create(key, data)
        except ObjectConflict:
            continue
