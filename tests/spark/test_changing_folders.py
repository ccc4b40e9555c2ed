"""Folders are listed while another thread removes them."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.changing_folders import list_folders, read_files


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Path]:
    """A folder in which another thread creates and removes files and folders all the time."""
    over = threading.Event()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(b"kept")

    def change() -> None:
        while not over.is_set():
            for number in range(20):
                inner = tmp_path / f"temporary-{number}" / "inner"
                inner.mkdir(parents=True)
                (inner / "file").write_bytes(b"temporary")
            for number in range(20):
                shutil.rmtree(tmp_path / f"temporary-{number}")

    thread = threading.Thread(target=change)
    thread.start()
    yield tmp_path
    over.set()
    thread.join()


def test_removed_folders_and_files_are_left_out(changing: Path) -> None:
    for _ in range(200):
        assert changing / "kept" in list_folders(changing)
        assert dict(read_files(changing))[changing / "kept" / "file"] == b"kept"
