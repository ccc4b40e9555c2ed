"""Encrypted shared states: both contracts, wrong and rotated keys, and what the storage gets to see."""

import base64
from collections.abc import Callable, Iterator

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.plans.state import State
from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.shared.encrypted_objects import (
    EncryptedObjects,
    EncryptionKey,
    parse_encryption_key,
)
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.memory_objects import MemoryObjects
from kdeclare.engine.state.shared.store import SharedStore
from tests.conditional_objects import ConditionalObjectsContract
from tests.state_stores import StateStoreContract


def make_key(byte: int) -> EncryptionKey:
    return parse_encryption_key(base64.b64encode(bytes([byte]) * 32).decode(), "env.KEY")


FIRST_KEY, SECOND_KEY = make_key(1), make_key(2)


class TestEncryptedObjects(ConditionalObjectsContract):
    @pytest.fixture
    def open_objects(self) -> Callable[[], ConditionalObjects]:
        objects = MemoryObjects()
        return lambda: EncryptedObjects(objects, [FIRST_KEY])


class TestEncryptedStore(StateStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[StateStore]:
        store = SharedStore(lambda: EncryptedObjects(MemoryObjects(8_000), [FIRST_KEY]), LeaseTiming(2.0))
        yield store
        store.close()


def test_storage_sees_no_content() -> None:
    objects = MemoryObjects()
    store = SharedStore(lambda: EncryptedObjects(objects, [FIRST_KEY]))
    with store.lock("kdeclare apply"):
        store.write(State("secret-lineage", 1, "secret-cluster", {}))
        with store.begin_run("r1", '{"topic": "secret-plan"}') as journal:
            journal.append({"operation": "secret-entry"})
    for key in objects.list_keys(""):
        stored = objects.get(key)
        assert stored is not None
        assert stored.data.startswith(b"kdeclare-encrypted ")
        assert b"secret" not in stored.data
        assert b"kdeclare apply" not in stored.data


def test_earlier_key_still_decrypts() -> None:
    objects = MemoryObjects()
    version = EncryptedObjects(objects, [FIRST_KEY]).create("state.json", b"first")
    rotated = EncryptedObjects(objects, [SECOND_KEY, FIRST_KEY])
    stored = rotated.get("state.json")
    assert stored is not None
    assert stored.data == b"first"
    rotated.replace("state.json", b"second", version)
    only_new = EncryptedObjects(objects, [SECOND_KEY]).get("state.json")
    assert only_new is not None
    assert only_new.data == b"second"


def change_byte(data: bytes) -> bytes:
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_byte, "it was changed, or moved from another location"),
        (lambda data: data[:50], "it was changed, or moved from another location"),
        (lambda data: b'{"version": 3}', "it is not encrypted"),
        (lambda data: data.replace(FIRST_KEY.id.encode(), SECOND_KEY.id.encode()), "with another key"),
    ],
)
def test_changed_object_is_refused(change: Callable[[bytes], bytes], reason: str) -> None:
    objects = MemoryObjects()
    EncryptedObjects(objects, [FIRST_KEY]).create("state.json", b"the state of a project")
    stored = objects.get("state.json")
    assert stored is not None
    objects.replace("state.json", change(stored.data), stored.version)
    with pytest.raises(KdeclareError) as caught:
        EncryptedObjects(objects, [FIRST_KEY]).get("state.json")
    (problem,) = caught.value.diagnostics
    assert problem.code == "state-encryption"
    assert reason in problem.detail


def test_object_from_another_place_is_refused() -> None:
    objects = MemoryObjects()
    EncryptedObjects(objects, [FIRST_KEY]).create("journals/r1/000001.json", b"entry")
    stored = objects.get("journals/r1/000001.json")
    assert stored is not None
    objects.create("journals/r1/000002.json", stored.data)
    with pytest.raises(KdeclareError, match="moved from another location"):
        EncryptedObjects(objects, [FIRST_KEY]).get("journals/r1/000002.json")


@pytest.mark.parametrize("text", ["", "too short", "A" * 44, base64.b64encode(b"x" * 31).decode()])
def test_unusable_key_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(KdeclareError) as caught:
        parse_encryption_key(text, "env.KEY")
    (problem,) = caught.value.diagnostics
    assert problem.code == "state-key"
    assert not text or text not in problem.detail
