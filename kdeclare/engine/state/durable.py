"""Files and folders that are whole or not there at all, also after a crash. Raises OSError only."""

import errno
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600
USUAL = 0o666


def find_private_mode(folder: Path) -> int:
    """The mode of new files with plans and state below ``folder``: for the owner alone.

    A folder that was explicitly set up for a group (setgid, or writable by the group and not by everybody)
    keeps its files readable and writable by the group, as far as the umask goes.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    mode = folder.stat().st_mode
    shared = mode & stat.S_ISGID or (mode & stat.S_IWGRP and not mode & stat.S_IWOTH)
    return 0o660 if shared else PRIVATE


def find_mode(path: Path) -> int:
    """The mode for replacing ``path``: the one that it has, else that of a new private file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return find_private_mode(path.parent)


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data`` at the file's position, however many calls it takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where its file system can."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as cause:
        if cause.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def make_folder(folder: Path) -> None:
    """Create a folder, durable, with all that is missing above it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    sync_folder(folder.parent)


def create_file(path: Path, data: bytes) -> None:
    """Create a file. Raises FileExistsError when there is one; a crash can leave a part of it."""
    _create(path, data)
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes, backup: Path | None = None, mode: int | None = None) -> None:
    """Give ``path`` new content in one step; what it held before becomes ``backup``.

    mode: the permissions of the new file, where they are not to be the usual ones.
    """
    fresh = _temporary(path)
    try:
        _create(fresh, data, USUAL if mode is None else mode)
        if mode is not None and path.exists():
            fresh.chmod(mode)  # the one that it has, whatever the umask
        if backup is not None and path.exists():
            _keep(path, backup)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_files(files: Mapping[Path, bytes], mode: int = USUAL) -> None:
    """Give several files new content; none of them is touched before all of it is on the disk."""
    fresh = {path: _temporary(path) for path in files}
    try:
        for path, data in files.items():
            _create(fresh[path], data, mode)
        for path, new in fresh.items():
            new.replace(path)
    except BaseException:
        for new in fresh.values():
            new.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path in files}:
        sync_folder(folder)


def create_folder(path: Path, files: dict[str, bytes], mode: int = USUAL) -> None:
    """Create a folder that holds ``files`` of this mode, in one step. Raises FileExistsError."""
    fresh = _temporary(path)
    try:
        fresh.mkdir()
        for name, data in files.items():
            _create(fresh / name, data, mode)
        sync_folder(fresh)
        try:
            fresh.rename(path)
        except OSError as cause:
            if cause.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from cause
            raise
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    sync_folder(path.parent)


def sweep(folder: Path) -> None:
    """Remove what interrupted writers left in a folder. Only for who is its one writer."""
    for left in folder.glob(".*.tmp"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            with suppress(OSError):
                left.unlink()


def _temporary(path: Path) -> Path:
    """A name beside ``path`` that no other process uses; hidden, and known to `sweep`."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")


def _create(path: Path, data: bytes, mode: int = USUAL) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _keep(path: Path, backup: Path) -> None:
    """Make ``backup`` what ``path`` is. A link costs nothing; not every file system has them."""
    fresh = _temporary(backup)
    try:
        try:
            os.link(path, fresh)
        except OSError:
            _create(fresh, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        fresh.replace(backup)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
