"""Publishing of tables, without Spark."""

from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.tables.storage import LocalStorage, build_write_error
from kdeclare.fleet.tables.unfinished_tables import UnfinishedTables, open_unfinished_tables, publish_tables

PATHS = {"one": "data/one", "two": "data/two"}
RECORD = "records/1.json"


class CopyingStore(LocalStorage):
    """A storage like an object store, whose rename would copy every file."""

    @property
    def moves_folders(self) -> bool:
        """Return False."""
        return False

    def rename(self, path: str, to: str) -> None:
        raise AssertionError("a rename would copy all files")


class HalfRename(LocalStorage):
    """A storage whose second rename copies only one of two files, and reports success."""

    def rename(self, path: str, to: str) -> None:
        if to == "data/two":
            self.write(f"{to}/a", self.read(f"{path}/a"))
        else:
            LocalStorage.rename(self, path, to)


class FailingRecord(LocalStorage):
    """A storage that reports an error after it has written the record."""

    def write(self, path: str, text: str) -> None:
        LocalStorage.write(self, path, text)
        if path == RECORD:
            raise build_write_error(path, "Connection reset")


class LastingRecord(FailingRecord):
    """The same, and the connection stays interrupted, so that the record cannot be deleted."""

    def remove(self, path: str) -> None:
        if path == RECORD:
            raise build_write_error(path, "Connection reset")
        LocalStorage.remove(self, path)


def write_tables(tables: UnfinishedTables) -> None:
    for name in PATHS:
        path = tables.begin_table(name)
        for file in ("a", "b"):
            tables.storage.write(f"{path}/{file}", name)
        tables.add_files(name, tables.storage.list_files(path))


def publish(storage: LocalStorage, final_paths: dict[str, str] | None = None) -> None:
    with open_unfinished_tables(storage, "1", final_paths) as tables:
        write_tables(tables)
        with publish_tables(tables, PATHS, RECORD):
            storage.write(RECORD, "")


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


COMPLETE = ["data/one/a", "data/one/b", "data/two/a", "data/two/b", RECORD]


def test_publish_moves_tables_and_removes_temporary_folder(tmp_path: Path) -> None:
    publish(LocalStorage(tmp_path))
    assert list_files(tmp_path) == COMPLETE
    assert LocalStorage(tmp_path).names("") == ("data", "records")


def test_object_store_gets_tables_without_a_copy(tmp_path: Path) -> None:
    publish(CopyingStore(tmp_path), PATHS)
    assert list_files(tmp_path) == COMPLETE


def test_unpublished_tables_are_removed_from_object_store(tmp_path: Path) -> None:
    storage = CopyingStore(tmp_path)
    with open_unfinished_tables(storage, "1", PATHS) as tables:
        write_tables(tables)
        assert list_files(tmp_path) == COMPLETE[:-1]
    assert list_files(tmp_path) == []


def test_existing_table_in_object_store_is_kept(tmp_path: Path) -> None:
    storage = CopyingStore(tmp_path)
    publish(storage, PATHS)
    with pytest.raises(KdeclareError, match="data/one: File exists"):
        publish(storage, PATHS)
    assert list_files(tmp_path) == COMPLETE


def test_publish_removes_tables_if_a_file_is_lost(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError, match=r"Files of the table 'two' in .* are missing") as raised:
        publish(HalfRename(tmp_path))
    (item,) = raised.value.diagnostics
    assert item.code == "incomplete-table"
    assert list_files(tmp_path) == []


@pytest.mark.parametrize("content", [None, "other", ""], ids=["lost", "additional", "truncated"])
def test_publish_refuses_changed_files(tmp_path: Path, content: str | None) -> None:
    storage = LocalStorage(tmp_path)
    with open_unfinished_tables(storage, "1") as tables:
        write_tables(tables)
        if content is None:
            storage.remove(f"{tables.folder}/one/b")
        else:
            storage.write(f"{tables.folder}/one/{'b' if content == '' else 'c'}", content)
        with pytest.raises(KdeclareError, match="table 'one'"), publish_tables(tables, PATHS, RECORD):
            raise AssertionError
    assert list_files(tmp_path) == []


def test_record_is_removed_with_its_tables(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError, match="Connection reset"):
        publish(FailingRecord(tmp_path))
    assert list_files(tmp_path) == []


def test_tables_stay_if_their_record_cannot_be_removed(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError, match="Connection reset"):
        publish(LastingRecord(tmp_path))
    assert list_files(tmp_path) == COMPLETE


def test_publish_fails_if_the_record_is_not_written(tmp_path: Path) -> None:
    with open_unfinished_tables(LocalStorage(tmp_path), "1") as tables:
        write_tables(tables)
        with (
            pytest.raises(KdeclareError, match="does not exist after"),
            publish_tables(tables, PATHS, RECORD),
        ):
            pass
    assert list_files(tmp_path) == []


def test_publish_keeps_existing_table_and_record(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    publish(storage)
    storage.write("data/one/a", "old")
    with pytest.raises(KdeclareError, match="File exists"):
        publish(storage)
    assert list_files(tmp_path) == COMPLETE
    assert storage.read("data/one/a") == "old"


def test_command_keeps_tables_of_other_command(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    with open_unfinished_tables(storage, "1") as one, open_unfinished_tables(storage, "2") as two:
        write_tables(one)
        write_tables(two)
    assert storage.names("") == ()
    with open_unfinished_tables(storage, "1") as one:
        storage.write("_unfinished/2/t/part", "")
    assert storage.exists("_unfinished/2/t/part")
