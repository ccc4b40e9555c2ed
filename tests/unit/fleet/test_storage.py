"""The contract of every storage, and the specifics of local folders."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.tables.storage import LocalStorage, Storage, find_local_storage


def read_code(raised: pytest.ExceptionInfo[KdeclareError]) -> str:
    """Return the code of the only diagnostic."""
    (item,) = raised.value.diagnostics
    return item.code


class StorageContract:
    """Subclasses provide a ``storage`` whose folder is ``folder``, which need not exist yet."""

    def test_storage_reads_what_was_written(self, storage: Storage) -> None:
        storage.write("audits/1/summary.json", '{"näme": "☃"}\n')
        assert storage.read("audits/1/summary.json") == '{"näme": "☃"}\n'
        assert storage.exists("audits/1/summary.json")
        assert storage.exists("audits")
        assert not storage.exists("audits/2")

    def test_write_replaces_file(self, storage: Storage) -> None:
        storage.write("a", "a longer text than the next")
        storage.write("a", "b")
        assert storage.read("a") == "b"
        assert storage.names("") == ("a",)

    def test_names_are_sorted_without_hidden_files(self, storage: Storage, folder: Path) -> None:
        for name in ("b", "a", "c/d"):
            storage.write(name, "")
        (folder / ".b.0815.tmp").touch()
        assert storage.names("") == ("a", "b", "c")
        assert storage.names("nowhere") == ()

    def test_list_files_returns_sizes_of_visible_files(self, storage: Storage, folder: Path) -> None:
        for name in ("t/a", "t/x=1/b", "t/_temporary/c", "t/_SUCCESS", "t/.d", "u/e"):
            storage.write(name, name)
        assert storage.list_files("t") == {"a": 3, "x=1/b": 7}
        assert storage.list_files("nowhere") == {}

    def test_folders_on_disk_are_moved_in_one_step(self, storage: Storage) -> None:
        assert storage.moves_folders

    def test_rename_moves_folder(self, storage: Storage) -> None:
        storage.write("fresh/1/a", "text")
        storage.rename("fresh/1", "live/x=1/2")
        assert storage.read("live/x=1/2/a") == "text"
        assert not storage.exists("fresh/1")

    @pytest.mark.parametrize("there", ["live/a", "live"])
    def test_rename_refuses_existing_target(self, storage: Storage, there: str) -> None:
        storage.write("fresh/a", "new")
        storage.write(there, "old")
        with pytest.raises(KdeclareError) as raised:
            storage.rename("fresh", "live")
        assert read_code(raised) == "cannot-write"
        assert storage.read("fresh/a") == "new"
        assert storage.read(there) == "old"

    def test_rename_refuses_missing_source(self, storage: Storage) -> None:
        with pytest.raises(KdeclareError) as raised:
            storage.rename("nowhere", "live")
        assert read_code(raised) == "cannot-write"

    def test_remove_deletes_files_and_folders(self, storage: Storage) -> None:
        storage.write("a/b/c", "")
        storage.write("d", "")
        for path in ("a", "d", "nowhere", "no/where"):
            storage.remove(path)
        assert storage.names("") == ()

    def test_remove_empty_deletes_empty_folders_only(self, storage: Storage) -> None:
        storage.write("a/b/c", "")
        for path in ("a", "a/b", "nowhere"):
            storage.remove_empty(path)
        assert storage.exists("a/b/c")
        storage.remove("a/b/c")
        for path in ("a/b", "a"):
            storage.remove_empty(path)
        assert not storage.exists("a")

    def test_read_refuses_missing_file(self, storage: Storage, folder: Path) -> None:
        with pytest.raises(KdeclareError, match=r"nope: No such file or directory\.$") as raised:
            storage.read("nope")
        assert read_code(raised) == "cannot-read"
        assert str(folder) in str(raised.value)

    def test_read_refuses_non_text_file(self, storage: Storage, folder: Path) -> None:
        folder.mkdir()
        (folder / "a").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(KdeclareError, match="not UTF-8") as raised:
            storage.read("a")
        assert read_code(raised) == "cannot-read"

    def test_write_refuses_file_as_folder(self, storage: Storage, folder: Path) -> None:
        storage.write("a", "text")
        with pytest.raises(KdeclareError) as raised:
            storage.write("a/b", "text")
        assert read_code(raised) == "cannot-write"
        assert str(folder / "a") in str(raised.value)

    def test_failed_write_leaves_existing_content(self, storage: Storage, folder: Path) -> None:
        (folder / "a").mkdir(parents=True)
        (folder / "a" / "b").touch()
        with pytest.raises(KdeclareError) as raised:
            storage.write("a", "text")
        assert read_code(raised) == "cannot-write"
        assert [path.name for path in folder.rglob("*")] == ["a", "b"]

    def test_write_all_replaces_several_files(self, storage: Storage) -> None:
        storage.write("a", "old")
        storage.write_all({"a": "new", "b/c": "☃"})
        assert (storage.read("a"), storage.read("b/c")) == ("new", "☃")
        assert (storage.names(""), storage.names("b")) == (("a", "b"), ("c",))

    def test_write_all_replaces_nothing_if_one_write_fails(self, storage: Storage, folder: Path) -> None:
        storage.write("a", "old")
        with pytest.raises(KdeclareError) as raised:
            storage.write_all({"b": "new", "c": "new", "a/d": "new"})
        assert read_code(raised) == "cannot-write"
        assert storage.read("a") == "old"
        assert [path.name for path in folder.rglob("*") if not path.name.endswith(".crc")] == ["a"]

    def test_uri_is_unescaped_folder(self, storage: Storage, folder: Path) -> None:
        assert storage.uri == f"file://{folder}"


class TestLocalStorage(StorageContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "a folder 100%"

    @pytest.fixture
    def storage(self, folder: Path) -> LocalStorage:
        return LocalStorage(folder)


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EFBIG], ids=errno.errorcode.get
)
def test_write_error_states_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail_fsync(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    storage = LocalStorage(tmp_path)
    storage.write("a", "before")
    monkeypatch.setattr(os, "fsync", fail_fsync)
    with pytest.raises(KdeclareError, match=os.strerror(number)) as raised:
        storage.write("a", "after")
    assert read_code(raised) == "cannot-write"
    assert storage.read("a") == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_relative_folder_is_resolved_on_creation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert LocalStorage(Path("out")).uri == f"file://{tmp_path}/out"


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("out", "out"),
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        ("file:a", "a"),
    ],
)
def test_find_local_storage_accepts_path_or_file_uri(location: str, folder: str) -> None:
    assert find_local_storage(location) == LocalStorage(Path(folder))


@pytest.mark.parametrize("location", ["s3a://bucket/a", "hdfs:/a", "abfs://container@account/a"])
def test_find_local_storage_rejects_other_uris(location: str) -> None:
    assert find_local_storage(location) is None


def test_storage_import_needs_no_spark() -> None:
    program = "import sys, kdeclare.fleet.tables.storage; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
