"""The contract of every storage, and the specifics of local folders."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.storage import LocalStorage, Storage, find_local_storage


def code_of(raised: pytest.ExceptionInfo[KdeclareError]) -> str:
    """Return the code of the only diagnostic."""
    (item,) = raised.value.diagnostics
    return item.code


class StorageContract:
    """Subclasses provide a ``storage`` whose folder is ``folder``, which need not exist yet."""

    def test_what_is_written_is_read(self, storage: Storage) -> None:
        storage.write("audits/1/summary.json", '{"näme": "☃"}\n')
        assert storage.read("audits/1/summary.json") == '{"näme": "☃"}\n'
        assert storage.exists("audits/1/summary.json")
        assert storage.exists("audits")
        assert not storage.exists("audits/2")

    def test_a_file_is_replaced(self, storage: Storage) -> None:
        storage.write("a", "a longer text than the next")
        storage.write("a", "b")
        assert storage.read("a") == "b"
        assert storage.names("") == ("a",)

    def test_names_are_sorted_and_without_what_is_hidden(self, storage: Storage, folder: Path) -> None:
        for name in ("b", "a", "c/d"):
            storage.write(name, "")
        (folder / ".b.0815.tmp").touch()
        assert storage.names("") == ("a", "b", "c")
        assert storage.names("nowhere") == ()

    def test_a_folder_is_moved(self, storage: Storage) -> None:
        storage.write("fresh/1/a", "text")
        storage.rename("fresh/1", "live/x=1/2")
        assert storage.read("live/x=1/2/a") == "text"
        assert not storage.exists("fresh/1")

    @pytest.mark.parametrize("there", ["live/a", "live"])
    def test_a_folder_is_not_moved_over_another(self, storage: Storage, there: str) -> None:
        storage.write("fresh/a", "new")
        storage.write(there, "old")
        with pytest.raises(KdeclareError) as raised:
            storage.rename("fresh", "live")
        assert code_of(raised) == "cannot-write"
        assert storage.read("fresh/a") == "new"
        assert storage.read(there) == "old"

    def test_what_is_not_there_is_not_moved(self, storage: Storage) -> None:
        with pytest.raises(KdeclareError) as raised:
            storage.rename("nowhere", "live")
        assert code_of(raised) == "cannot-write"

    def test_files_and_folders_are_removed(self, storage: Storage) -> None:
        storage.write("a/b/c", "")
        storage.write("d", "")
        for path in ("a", "d", "nowhere", "no/where"):
            storage.remove(path)
        assert storage.names("") == ()

    def test_only_an_empty_folder_is_removed_as_such(self, storage: Storage) -> None:
        storage.write("a/b/c", "")
        for path in ("a", "a/b", "nowhere"):
            storage.remove_empty(path)
        assert storage.exists("a/b/c")
        storage.remove("a/b/c")
        for path in ("a/b", "a"):
            storage.remove_empty(path)
        assert not storage.exists("a")

    def test_what_is_not_there_is_not_read(self, storage: Storage, folder: Path) -> None:
        with pytest.raises(KdeclareError, match=r"nope: No such file or directory\.$") as raised:
            storage.read("nope")
        assert code_of(raised) == "cannot-read"
        assert str(folder) in str(raised.value)

    def test_what_is_no_text_is_not_read(self, storage: Storage, folder: Path) -> None:
        folder.mkdir()
        (folder / "a").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(KdeclareError, match="not UTF-8") as raised:
            storage.read("a")
        assert code_of(raised) == "cannot-read"

    def test_a_file_is_no_folder(self, storage: Storage, folder: Path) -> None:
        storage.write("a", "text")
        with pytest.raises(KdeclareError) as raised:
            storage.write("a/b", "text")
        assert code_of(raised) == "cannot-write"
        assert str(folder / "a") in str(raised.value)

    def test_what_cannot_be_written_leaves_what_was_there(self, storage: Storage, folder: Path) -> None:
        (folder / "a").mkdir(parents=True)
        (folder / "a" / "b").touch()
        with pytest.raises(KdeclareError) as raised:
            storage.write("a", "text")
        assert code_of(raised) == "cannot-write"
        assert [path.name for path in folder.rglob("*")] == ["a", "b"]

    def test_several_files_are_replaced_together(self, storage: Storage) -> None:
        storage.write("a", "old")
        storage.write_all({"a": "new", "b/c": "☃"})
        assert (storage.read("a"), storage.read("b/c")) == ("new", "☃")
        assert (storage.names(""), storage.names("b")) == (("a", "b"), ("c",))

    def test_of_several_files_none_is_replaced_if_one_cannot_be_written(
        self, storage: Storage, folder: Path
    ) -> None:
        storage.write("a", "old")
        with pytest.raises(KdeclareError) as raised:
            storage.write_all({"b": "new", "c": "new", "a/d": "new"})
        assert code_of(raised) == "cannot-write"
        assert storage.read("a") == "old"
        assert [path.name for path in folder.rglob("*") if not path.name.endswith(".crc")] == ["a"]

    def test_the_uri_is_the_folder_as_it_is(self, storage: Storage, folder: Path) -> None:
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
def test_why_nothing_is_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fails(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    storage = LocalStorage(tmp_path)
    storage.write("a", "before")
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(KdeclareError, match=os.strerror(number)) as raised:
        storage.write("a", "after")
    assert code_of(raised) == "cannot-write"
    assert storage.read("a") == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_relative_folder_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_path_or_file_uri_is_a_folder_here(location: str, folder: str) -> None:
    assert find_local_storage(location) == LocalStorage(Path(folder))


@pytest.mark.parametrize("location", ["s3a://bucket/a", "hdfs:/a", "abfs://container@account/a"])
def test_any_other_uri_is_not(location: str) -> None:
    assert find_local_storage(location) is None


def test_a_folder_needs_no_spark() -> None:
    program = "import sys, kdeclare.fleet.storage; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
