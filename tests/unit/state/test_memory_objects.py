"""The storage in memory passes the contract that real storages pass."""

from collections.abc import Callable

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectVersion
from kdeclare.engine.state.shared.cached_objects import CachedObjects
from kdeclare.engine.state.shared.memory_objects import MemoryObjects
from kdeclare.engine.state.shared.probe import probe_storage
from tests.conditional_objects import ConditionalObjectsContract


class TestMemoryObjects(ConditionalObjectsContract):
    @pytest.fixture
    def open_objects(self) -> Callable[[], ConditionalObjects]:
        objects = MemoryObjects()
        return lambda: objects


def test_object_that_never_changes_is_read_once() -> None:
    objects = MemoryObjects()
    requests: list[str] = []
    objects.on_request = lambda request, key, moment: requests.append(f"{request} {key}")
    reader = CachedObjects(objects)
    assert reader.get("plans/r1.json") is None
    objects.create("plans/r1.json", b"plan")
    objects.create("state.json", b"state")
    requests.clear()
    for _ in range(2):
        for key in ("plans/r1.json", "state.json"):
            assert reader.get(key) is not None
    assert requests == ["get plans/r1.json", "get state.json", "get state.json"]


def test_cache_has_a_limit() -> None:
    objects = MemoryObjects(20 * 1024 * 1024)
    reader = CachedObjects(objects)
    for name in "abc":
        reader.create(f"parts/{name}", bytes(15 * 1024 * 1024))
    requests: list[str] = []
    objects.on_request = lambda request, key, moment: requests.append(key)
    for name in "abc":
        reader.get(f"parts/{name}")
    assert "parts/a" in requests
    assert len(reader._cache) <= 2


class _OverwritingObjects(MemoryObjects):
    """A storage that ignores conditions, like some servers that speak the protocol of S3."""

    ignores_creation = True

    def create(self, key: str, data: bytes) -> ObjectVersion:
        if self.ignores_creation:
            self.delete([key])
        return super().create(key, data)

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        stored = self.get(key)
        return super().replace(key, data, stored.version if stored else version)


@pytest.mark.parametrize("ignores_creation", [True, False])
def test_storage_without_conditions_is_refused(ignores_creation: bool) -> None:
    objects = _OverwritingObjects()
    objects.ignores_creation = ignores_creation
    with pytest.raises(KdeclareError) as caught:
        probe_storage(objects)
    assert caught.value.diagnostics[0].code == "state-storage-unsafe"
    assert objects.list_keys("") == ()
