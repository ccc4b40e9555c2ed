"""A cache of the objects that never change: plans, journals and parts of documents.

One command reads the same plans and journals in several steps. With remote storage, each read takes longer
than the step itself.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable

from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectVersion, StoredObject
from kdeclare.engine.state.shared.documents import PARTS_FOLDER
from kdeclare.engine.state.shared.journal import JOURNALS_FOLDER

PLANS_FOLDER = "plans/"

_IMMUTABLE = (PLANS_FOLDER, JOURNALS_FOLDER, PARTS_FOLDER)
_MAX_BYTES = 32 * 1024 * 1024


class CachedObjects:
    """`ConditionalObjects` with a cache of the objects that are created once and never replaced.

    Only objects that were certainly stored are cached, so an object that does not exist yet is always read
    again. If another process removes an old run, the cache still returns the run's objects. If the cached
    objects exceed 32 MiB in total, the least recently used ones are dropped.
    """

    def __init__(self, objects: ConditionalObjects) -> None:
        """Add a cache to ``objects``. Closing this object also closes ``objects``."""
        self._objects = objects
        self._cache: OrderedDict[str, StoredObject] = OrderedDict()
        self._size = 0
        self._mutex = threading.Lock()

    @property
    def max_object_bytes(self) -> int:
        """See `ConditionalObjects.max_object_bytes`."""
        return self._objects.max_object_bytes

    def get(self, key: str) -> StoredObject | None:
        """See `ConditionalObjects.get`."""
        with self._mutex:
            cached = self._cache.get(key)
            if cached is not None:
                self._cache.move_to_end(key)
                return cached
        stored = self._objects.get(key)
        if stored is not None:
            self._remember(key, stored)
        return stored

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """See `ConditionalObjects.list_keys`."""
        return self._objects.list_keys(prefix)

    def create(self, key: str, data: bytes) -> ObjectVersion:
        """See `ConditionalObjects.create`."""
        version = self._objects.create(key, data)
        self._remember(key, StoredObject(data, version))
        return version

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """See `ConditionalObjects.replace`."""
        self._forget(key)
        return self._objects.replace(key, data, version)

    def delete(self, keys: Iterable[str]) -> None:
        """See `ConditionalObjects.delete`."""
        deleted_keys = tuple(keys)
        for key in deleted_keys:
            self._forget(key)
        self._objects.delete(deleted_keys)

    def get_location(self, key: str) -> str:
        """See `ConditionalObjects.get_location`."""
        return self._objects.get_location(key)

    def close(self) -> None:
        """See `ConditionalObjects.close`."""
        self._objects.close()

    def _remember(self, key: str, stored: StoredObject) -> None:
        if not key.startswith(_IMMUTABLE) or len(stored.data) > _MAX_BYTES:
            return
        with self._mutex:
            replaced = self._cache.pop(key, None)
            self._size += len(stored.data) - (len(replaced.data) if replaced else 0)
            self._cache[key] = stored
            while self._size > _MAX_BYTES:
                _, forgotten = self._cache.popitem(last=False)
                self._size -= len(forgotten.data)

    def _forget(self, key: str) -> None:
        with self._mutex:
            forgotten = self._cache.pop(key, None)
            self._size -= len(forgotten.data) if forgotten else 0
