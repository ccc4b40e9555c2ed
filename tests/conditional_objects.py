"""The contract of storages for shared states: subclasses of `ConditionalObjectsContract` run it."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kdeclare.core.storage.conditional_objects import (
    ConditionalObjects,
    ObjectConflict,
    ObjectVersion,
    write_certainly,
)
from kdeclare.engine.state.shared.probe import probe_storage

KEY = "journals/20261128T101500Z-1a2b3c4d/000001.json"


class ConditionalObjectsContract:
    """Tests that every storage has to pass.

    A subclass defines the fixture ``open_objects``: a function that opens the same storage, which is empty at
    first, as another process would.
    """

    @pytest.fixture
    def objects(self, open_objects: Callable[[], ConditionalObjects]) -> ConditionalObjects:
        return open_objects()

    @pytest.fixture
    def others(self, open_objects: Callable[[], ConditionalObjects]) -> ConditionalObjects:
        return open_objects()

    def test_empty_storage_has_no_objects(self, objects: ConditionalObjects) -> None:
        assert objects.get(KEY) is None
        assert objects.list_keys("") == ()
        assert objects.list_keys("journals/") == ()

    @pytest.mark.parametrize("data", [b"", b"x", b"\x00\xff\r\n", "é\u2028".encode()])
    def test_written_bytes_are_returned_everywhere(
        self, objects: ConditionalObjects, others: ConditionalObjects, data: bytes
    ) -> None:
        version = objects.create(KEY, data)
        for reader in (objects, others):
            stored = reader.get(KEY)
            assert stored is not None
            assert (stored.data, stored.version) == (data, version)

    def test_largest_object_is_accepted(self, objects: ConditionalObjects) -> None:
        data = os.urandom(min(objects.max_object_bytes, 2_000_000))
        objects.create(KEY, data)
        stored = objects.get(KEY)
        assert stored is not None
        assert stored.data == data

    def test_existing_object_is_not_created_again(
        self, objects: ConditionalObjects, others: ConditionalObjects
    ) -> None:
        objects.create(KEY, b"first")
        for writer in (others, objects):
            with pytest.raises(ObjectConflict):
                writer.create(KEY, b"second")
        stored = others.get(KEY)
        assert stored is not None
        assert stored.data == b"first"

    def test_replacement_requires_current_version(
        self, objects: ConditionalObjects, others: ConditionalObjects
    ) -> None:
        first = objects.create(KEY, b"first")
        second = others.replace(KEY, b"second", first)
        assert second != first
        with pytest.raises(ObjectConflict):
            objects.replace(KEY, b"third", first)
        third = objects.replace(KEY, b"first", second)
        assert third not in (first, second)
        with pytest.raises(ObjectConflict):
            others.replace(KEY, b"fourth", first)
        stored = others.get(KEY)
        assert stored is not None
        assert (stored.data, stored.version) == (b"first", third)

    def test_missing_object_is_not_replaced(self, objects: ConditionalObjects) -> None:
        first = objects.create(KEY, b"first")
        objects.delete([KEY])
        with pytest.raises(ObjectConflict):
            objects.replace(KEY, b"second", first)
        assert objects.get(KEY) is None

    def test_deleted_object_can_be_created_again(
        self, objects: ConditionalObjects, others: ConditionalObjects
    ) -> None:
        first = objects.create(KEY, b"first")
        others.delete([KEY, "missing"])
        assert objects.get(KEY) is None
        assert objects.list_keys("") == ()
        assert objects.create(KEY, b"first") != first

    def test_keys_are_listed_by_prefix(self, objects: ConditionalObjects, others: ConditionalObjects) -> None:
        keys = ("lease.json", "parts/a-1", "parts/b-1", "plans/r1.json", "plans/r2.json", "plans-x")
        for key in reversed(keys):
            objects.create(key, b"x")
        assert others.list_keys("") == tuple(sorted(keys))
        assert others.list_keys("plans/") == ("plans/r1.json", "plans/r2.json")
        assert others.list_keys("nothing/") == ()

    def test_own_repeated_write_is_recognized(self, objects: ConditionalObjects) -> None:
        first = write_certainly(objects, KEY, b"first", None)
        assert write_certainly(objects, KEY, b"first", None) == first
        second = write_certainly(objects, KEY, b"second", first)
        assert write_certainly(objects, KEY, b"second", first) == second
        with pytest.raises(ObjectConflict):
            write_certainly(objects, KEY, b"third", first)

    def test_one_of_many_writers_wins(self, open_objects: Callable[[], ConditionalObjects]) -> None:
        writers = [open_objects() for _ in range(4)]

        def create(number: int) -> ObjectVersion | None:
            try:
                return writers[number].create(KEY, b"%d" % number)
            except ObjectConflict:
                return None

        def replace(number: int) -> ObjectVersion | None:
            try:
                return writers[number].replace(KEY, b"%d" % number, version)
            except ObjectConflict:
                return None

        with ThreadPoolExecutor(len(writers)) as pool:
            (version,) = filter(None, pool.map(create, range(len(writers))))
            for _ in range(3):
                (version,) = filter(None, pool.map(replace, range(len(writers))))
        stored = writers[0].get(KEY)
        assert stored is not None
        assert stored.version == version

    def test_different_objects_do_not_conflict(self, open_objects: Callable[[], ConditionalObjects]) -> None:
        writers = [open_objects() for _ in range(3)]
        with ThreadPoolExecutor(len(writers)) as pool:
            list(pool.map(lambda n: writers[n].create(f"plans/{n}", b"x"), range(len(writers))))
        assert len(writers[0].list_keys("plans/")) == len(writers)

    def test_storage_passes_probe(self, objects: ConditionalObjects) -> None:
        probe_storage(objects)
        assert objects.list_keys("") == ()

    def test_locations_name_the_objects(self, objects: ConditionalObjects) -> None:
        assert objects.get_location(KEY) != objects.get_location("lease.json")

    def test_storage_is_closed_twice(self, open_objects: Callable[[], ConditionalObjects]) -> None:
        objects = open_objects()
        objects.create(KEY, b"x")
        objects.close()
        objects.close()
