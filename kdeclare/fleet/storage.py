"""Where results of a fleet are kept: the port `Storage`, folders of this machine, and whose they are."""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.engine.state.durable_files import (
    find_mode,
    find_private_mode,
    make_folder,
    replace_file,
    replace_files,
    sync_folder,
)


class Storage(Protocol):
    """One folder; paths are relative to it, with slashes.

    Raises KdeclareError ``cannot-read`` or ``cannot-write`` with the path and the reason (full, denied,
    not there).
    """

    @property
    def uri(self) -> str:
        """The folder, as Spark takes it."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted; nothing if it is not there."""

    def read(self, path: str) -> str:
        """The text of a file."""

    def write(self, path: str, text: str) -> None:
        """Write a file whole or not at all, and the folders that lead to it; replaces what is there."""

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write several files, by path; nothing is replaced before all of it has been written beside.

        Where files appear when they are closed, as in object stores, they are written one after the other.
        """

    def rename(self, path: str, to: str) -> None:
        """Move a folder to where nothing is yet."""

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; nothing if it is not there."""

    def remove_empty(self, path: str) -> None:
        """Delete a folder if nothing is in it; nothing happens if there is something, or no folder."""


def build_read_error(path: str, reason: str) -> KdeclareError:
    """A file or folder that is not there, or that nobody may or can read."""
    return KdeclareError(
        error(
            "cannot-read",
            "A file cannot be read",
            f"Cannot read {path}: {reason.rstrip('.')}.",
            hint="Check the location, and that whoever runs kdeclare may read there.",
        )
    )


def build_write_error(path: str, reason: str) -> KdeclareError:
    """A file or folder that cannot be written, moved or deleted; what was there before is whole."""
    return KdeclareError(
        error(
            "cannot-write",
            "A file cannot be written",
            f"Cannot write {path}: {reason.rstrip('.')}.",
            hint="Check the location, that there is space, and that whoever runs kdeclare may write there.",
        )
    )


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A folder that need not be there yet; see `Storage`."""

    folder: Path

    @property
    def uri(self) -> str:
        """``file://`` and the absolute path as it is: Hadoop takes ``%20`` for what it says."""
        return f"file://{self.folder.absolute().as_posix()}"

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        with _report_read_errors(self._resolve(path)):
            return os.path.lexists(self._resolve(path))

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted; hidden files, as of interrupted writers, are left out."""
        folder = self._resolve(path)
        with _report_read_errors(folder):
            try:
                found = [entry.name for entry in folder.iterdir()]
            except FileNotFoundError:
                return ()
        return tuple(sorted(name for name in found if not name.startswith(".")))

    def read(self, path: str) -> str:
        """The text of a file."""
        file = self._resolve(path)
        with _report_read_errors(file):
            data = file.read_bytes()
        try:
            return data.decode()
        except UnicodeDecodeError as cause:
            raise build_read_error(str(file), "It is not UTF-8 text") from cause

    def write(self, path: str, text: str) -> None:
        """Write a file whole or not at all, also when the machine dies; replaces what is there."""
        file = self._resolve(path)
        with _report_write_errors(file):
            make_folder(file.parent)
            replace_file(file, text.encode(), mode=find_mode(file))

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write several files; nothing is replaced before all of it is on the disk."""
        files = {self._resolve(path): text.encode() for path, text in texts.items()}
        with _report_write_errors(self.folder):
            for file in files:
                make_folder(file.parent)
            replace_files(files, find_private_mode(self.folder))

    def rename(self, path: str, to: str) -> None:
        """Move a folder to where nothing is yet."""
        source, target = self._resolve(path), self._resolve(to)
        with _report_write_errors(target):
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
            make_folder(target.parent)
            source.rename(target)
            sync_folder(target.parent)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; nothing if it is not there."""
        target = self._resolve(path)
        with _report_write_errors(target):
            try:
                if target.is_dir() and not target.is_symlink():
                    shutil.rmtree(target)
                else:
                    target.unlink()
            except FileNotFoundError:
                return

    def remove_empty(self, path: str) -> None:
        """Delete a folder if nothing is in it."""
        with suppress(OSError):  # another command is at work there, or has taken it away
            self._resolve(path).rmdir()

    def _resolve(self, path: str) -> Path:
        return self.folder / path


def find_local_storage(location: str) -> LocalStorage | None:
    """The storage of a path or a ``file:`` URI; None for any other URI, which is Hadoop's."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        return LocalStorage(Path(location))
    if scheme[1].lower() == "file":
        return LocalStorage(Path(re.sub(r"^//[^/]*(?=/)", "", location[scheme.end() :])))
    return None


@contextmanager
def _report_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise build_read_error(str(path), cause.strerror or str(cause)) from cause


@contextmanager
def _report_write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise build_write_error(str(path), cause.strerror or str(cause)) from cause


SNAPSHOTS, AUDITS = "snapshots", "audits"
"""Folders of records, one file each, called so that they sort by time."""


def list_record_ids(storage: Storage, folder: str) -> tuple[str, ...]:
    """The ids of all records in one of these folders, oldest first."""
    return tuple(name.removesuffix(".json") for name in storage.names(folder) if name.endswith(".json"))


def require_same_fleet(storage: Storage, fleet: str) -> None:
    """Raise KdeclareError where the newest snapshot or audit of a folder is another fleet's.

    A record that cannot be read is told by whoever needs it.
    """
    for folder in (SNAPSHOTS, AUDITS):
        record_ids = list_record_ids(storage, folder)
        if not record_ids:
            continue
        path = f"{folder}/{record_ids[-1]}.json"
        recorded_fleet = _find_fleet(storage.read(path))
        if recorded_fleet not in (None, fleet):
            raise KdeclareError(
                error(
                    "other-fleet",
                    "The folder of another fleet",
                    f"{storage.uri}/{path} is of the fleet '{recorded_fleet}', and this is '{fleet}'.",
                    hint="Give each fleet a folder of its own, or the fleet its earlier name.",
                )
            )


def _find_fleet(text: str) -> str | None:
    try:
        fleet = json.loads(text)["fleet"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return fleet if isinstance(fleet, str) else None
