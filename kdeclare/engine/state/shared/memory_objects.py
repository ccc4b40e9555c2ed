"""Objects in memory, for tests of shared states. Requests can fail before or after their effect."""

import threading
from collections.abc import Callable, Iterable
from typing import Literal

from kdeclare.core.storage.conditional_objects import ObjectConflict, ObjectVersion, StoredObject

Request = Literal["get", "list", "create", "replace", "delete"]
Moment = Literal["before", "after"]


def _continue(request: Request, key: str, moment: Moment) -> None:
    """Do nothing, so that the request succeeds."""


class MemoryObjects:
    """`ConditionalObjects` in memory.

    on_request: called before and after the effect of each request. It can raise an exception, wait, or write
        to the same objects.
    """

    def __init__(self, max_object_bytes: int = 1_000_000) -> None:
        """Create an empty store. max_object_bytes: the maximum size of one object, in bytes."""
        self.on_request: Callable[[Request, str, Moment], None] = _continue
        self._max_object_bytes = max_object_bytes
        self._objects: dict[str, StoredObject] = {}
        self._count = 0
        self._mutex = threading.Lock()

    @property
    def max_object_bytes(self) -> int:
        """See `ConditionalObjects.max_object_bytes`."""
        return self._max_object_bytes

    def get(self, key: str) -> StoredObject | None:
        """See `ConditionalObjects.get`."""
        self.on_request("get", key, "before")
        return self._objects.get(key)

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """See `ConditionalObjects.list_keys`."""
        self.on_request("list", prefix, "before")
        with self._mutex:
            return tuple(sorted(key for key in self._objects if key.startswith(prefix)))

    def create(self, key: str, data: bytes) -> ObjectVersion:
        """See `ConditionalObjects.create`."""
        return self._write("create", key, data, None)

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """See `ConditionalObjects.replace`."""
        return self._write("replace", key, data, version)

    def _write(self, request: Request, key: str, data: bytes, version: ObjectVersion | None) -> ObjectVersion:
        if len(data) > self._max_object_bytes:
            raise ValueError(f"'{key}' has {len(data)} bytes")
        self.on_request(request, key, "before")
        with self._mutex:
            stored = self._objects.get(key)
            if (stored.version if stored else None) != version:
                raise ObjectConflict(key)
            self._count += 1
            written = StoredObject(data, ObjectVersion(str(self._count)))
            self._objects[key] = written
        self.on_request(request, key, "after")
        return written.version

    def delete(self, keys: Iterable[str]) -> None:
        """See `ConditionalObjects.delete`."""
        for key in keys:
            self.on_request("delete", key, "before")
            with self._mutex:
                self._objects.pop(key, None)
            self.on_request("delete", key, "after")

    def get_location(self, key: str) -> str:
        """See `ConditionalObjects.get_location`."""
        return f"memory:{key}"

    def close(self) -> None:
        """See `ConditionalObjects.close`."""
