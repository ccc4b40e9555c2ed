"""The `Storage` of snapshots and audits, and its implementation for local folders."""

import errno
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
    """The folder that contains the snapshots and audits of a fleet. Paths are relative and use slashes.

    The methods raise KdeclareError (``cannot-read`` or ``cannot-write``) with the path and the reason, such
    as a full disk or a missing permission.
    """

    @property
    def uri(self) -> str:
        """The URI of the folder, in the form that Spark accepts."""

    @property
    def moves_folders(self) -> bool:
        """Whether `rename` moves a folder in one step. In object stores, it copies every file."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    def list_files(self, path: str) -> Mapping[str, int]:
        """Return the sizes of all files in a folder and its subfolders, in bytes, by relative path.

        Return an empty mapping if the folder does not exist. Files and folders whose names start with a dot
        or an underscore are omitted, because readers of tables skip them, too.
        """

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names of the files and folders in a folder, sorted.

        Return an empty tuple if the folder does not exist. Hidden files are omitted.
        """

    def read(self, path: str) -> str:
        """Return the contents of a text file."""

    def write(self, path: str, text: str) -> None:
        """Write a file atomically. Replace an existing file, and create missing parent folders."""

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write several files. Replace existing files only after all new files are on disk.

        In object stores, the files are written one after the other, so if a write fails, only some of
        the files are replaced.

        texts: the contents of the files, by path.
        """

    def rename(self, path: str, to: str) -> None:
        """Move a folder to a path that does not exist yet."""

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with its contents, if it exists."""

    def remove_empty(self, path: str) -> None:
        """Delete a folder if it exists and is empty."""


def build_read_error(path: str, reason: str) -> KdeclareError:
    """Return the error about a file or folder that does not exist or cannot be read."""
    return KdeclareError(
        error(
            "cannot-read",
            "Cannot read file",
            f"Cannot read {path}: {reason.rstrip('.')}.",
            hint="Check the location. The user who runs kdeclare must have read permission.",
        )
    )


def build_write_error(path: str, reason: str) -> KdeclareError:
    """Return the error about a file or folder that cannot be written, moved or deleted."""
    return KdeclareError(
        error(
            "cannot-write",
            "Cannot write file",
            f"Cannot write {path}: {reason.rstrip('.')}.",
            hint="Check the location and the free space. The user who runs kdeclare must have "
            "write permission.",
        )
    )


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A local folder; see `Storage`. The folder does not have to exist yet."""

    folder: Path

    @property
    def uri(self) -> str:
        """The URI of the folder: ``file://`` and the absolute path.

        The path is not percent-encoded, because Hadoop does not decode ``%20``.
        """
        return f"file://{self.folder.absolute().as_posix()}"

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        with _report_read_errors(self._resolve(path)):
            return os.path.lexists(self._resolve(path))

    @property
    def moves_folders(self) -> bool:
        """Return True, because a local folder is moved in one step."""
        return True

    def list_files(self, path: str) -> Mapping[str, int]:
        """Return the sizes of all files in a folder and its subfolders; see `Storage`."""
        folder, sizes = self._resolve(path), dict[str, int]()
        with _report_read_errors(folder):
            for current_folder, folders, files in os.walk(folder, onerror=_raise_unless_missing):
                folders[:] = [name for name in folders if is_visible(name)]
                for file in (Path(current_folder, name) for name in files if is_visible(name)):
                    sizes[file.relative_to(folder).as_posix()] = file.stat().st_size
        return sizes

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names of the files and folders in a folder, sorted. Hidden files are omitted."""
        folder = self._resolve(path)
        with _report_read_errors(folder):
            try:
                found = [entry.name for entry in folder.iterdir()]
            except FileNotFoundError:
                return ()
        return tuple(sorted(name for name in found if not name.startswith(".")))

    def read(self, path: str) -> str:
        """Return the contents of a text file."""
        file = self._resolve(path)
        with _report_read_errors(file):
            data = file.read_bytes()
        try:
            return data.decode()
        except UnicodeDecodeError as cause:
            raise build_read_error(str(file), "the file is not UTF-8 text") from cause

    def write(self, path: str, text: str) -> None:
        """Write a file atomically, even if the machine crashes. Replace an existing file."""
        file = self._resolve(path)
        with _report_write_errors(file):
            make_folder(file.parent)
            replace_file(file, text.encode(), mode=find_mode(file))

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write several files. Replace existing files only after all new files are on disk."""
        files = {self._resolve(path): text.encode() for path, text in texts.items()}
        with _report_write_errors(self.folder):
            for file in files:
                make_folder(file.parent)
            replace_files(files, find_private_mode(self.folder))

    def rename(self, path: str, to: str) -> None:
        """Move a folder to a path that does not exist yet."""
        source, target = self._resolve(path), self._resolve(to)
        with _report_write_errors(target):
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
            make_folder(target.parent)
            source.rename(target)
            sync_folder(target.parent)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with its contents, if it exists."""
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
        """Delete a folder if it is empty."""
        with suppress(OSError):  # another command is using the folder, or has already deleted the folder
            self._resolve(path).rmdir()

    def _resolve(self, path: str) -> Path:
        return self.folder / path


def find_local_storage(location: str) -> LocalStorage | None:
    """Return the storage for a path or a ``file:`` URI. For any other URI, return None."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        return LocalStorage(Path(location))
    if scheme[1].lower() == "file":
        return LocalStorage(Path(re.sub(r"^//[^/]*(?=/)", "", location[scheme.end() :])))
    return None


def is_visible(name: str) -> bool:
    """Whether readers of tables read a file or folder with this name, instead of skipping it."""
    return not name.startswith((".", "_"))


def _raise_unless_missing(problem: OSError) -> None:
    if not isinstance(problem, FileNotFoundError):
        raise problem


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
