"""The ids of snapshots and audits in a folder, even if the file system lists new files late."""

from pathlib import Path

import pytest

from kdeclare.fleet.tables.records import AUDITS, build_index, list_record_ids
from kdeclare.fleet.tables.storage import LocalStorage


class LateListing(LocalStorage):
    """A storage that does not list new files yet."""

    def names(self, path: str) -> tuple[str, ...]:
        return LocalStorage.names(self, path)[:1]


def add_record(storage: LocalStorage, record_id: str) -> None:
    storage.write_all({**build_index(storage, AUDITS, record_id), f"{AUDITS}/{record_id}.json": "{}"})


def test_records_of_late_listing_are_in_index(tmp_path: Path) -> None:
    late = LateListing(tmp_path)
    for record_id in ("1", "2", "3"):
        add_record(late, record_id)
    assert list_record_ids(late, AUDITS) == ("1", "2", "3")


def test_deleted_records_leave_the_index(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for record_id in ("1", "2"):
        add_record(storage, record_id)
    storage.remove(f"{AUDITS}/2.json")
    assert list_record_ids(storage, AUDITS) == ("1",)
    add_record(storage, "3")
    assert "2" not in storage.read("audits.json")


def test_index_without_record_lists_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.write_all(build_index(storage, AUDITS, "1"))
    assert list_record_ids(storage, AUDITS) == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format_version": "1.0", "audits": [1, "../x"]}'])
def test_folder_without_valid_index_is_listed(tmp_path: Path, text: str) -> None:
    storage = LocalStorage(tmp_path)
    storage.write(f"{AUDITS}/1.json", "{}")
    if text:
        storage.write("audits.json", text)
    assert list_record_ids(storage, AUDITS) == ("1",)
