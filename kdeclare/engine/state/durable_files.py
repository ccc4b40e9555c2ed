"""Write files and folders atomically, so that they survive a crash of the machine. Raises only OSError."""

import errno
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PRIVATE_MODE = 0o600
DEFAULT_MODE = 0o666


def find_private_mode(folder: Path) -> int:
    """Return the mode of new files with plans and state in ``folder``. By default, only the owner has access.

    If the folder was set up for a group (setgid, or writable by the group but not by others), members of the
    group can also read and write the files, if the umask permits this.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    mode = folder.stat().st_mode
    is_shared = mode & stat.S_ISGID or (mode & stat.S_IWGRP and not mode & stat.S_IWOTH)
    return 0o660 if is_shared else PRIVATE_MODE


def find_mode(path: Path) -> int:
    """Return the mode for replacing a file: its current mode, or the mode of a new private file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return find_private_mode(path.parent)


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data`` at the current position, with as many system calls as needed."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(fd, remaining) :]


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, if its file system supports this."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as cause:
        if cause.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, and flush them to disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    sync_folder(folder.parent)


def create_file(path: Path, data: bytes) -> None:
    """Create a file. Raises FileExistsError if it exists. A crash can leave a partial file."""
    _write_new_file(path, data)
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes, backup: Path | None = None, mode: int | None = None) -> None:
    """Replace the content of ``path`` atomically, and keep the previous content as ``backup``.

    mode: the permissions of the new file; None for the default.
    """
    temporary_path = _make_temporary_path(path)
    try:
        _write_new_file(temporary_path, data, DEFAULT_MODE if mode is None else mode)
        if mode is not None and path.exists():
            temporary_path.chmod(mode)  # apply the exact mode, regardless of the umask
        if backup is not None and path.exists():
            _back_up(path, backup)
        temporary_path.replace(path)
    except BaseException:
        temporary_path.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_files(files: Mapping[Path, bytes], mode: int = DEFAULT_MODE) -> None:
    """Replace the content of several files. No file is touched before all new content is on disk."""
    temporary_paths = {path: _make_temporary_path(path) for path in files}
    try:
        for path, data in files.items():
            _write_new_file(temporary_paths[path], data, mode)
        for path, temporary_path in temporary_paths.items():
            temporary_path.replace(path)
    except BaseException:
        for temporary_path in temporary_paths.values():
            temporary_path.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path in files}:
        sync_folder(folder)


def create_folder(path: Path, files: dict[str, bytes], mode: int = DEFAULT_MODE) -> None:
    """Create a folder with this mode and these ``files``, atomically. Raises FileExistsError."""
    temporary_path = _make_temporary_path(path)
    try:
        temporary_path.mkdir()
        for name, data in files.items():
            _write_new_file(temporary_path / name, data, mode)
        sync_folder(temporary_path)
        try:
            temporary_path.rename(path)
        except OSError as cause:
            if cause.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from cause
            raise
    except BaseException:
        shutil.rmtree(temporary_path, ignore_errors=True)
        raise
    sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder with its files. After a crash, the folder is either complete or gone."""
    temporary_path = _make_temporary_path(path)
    path.rename(temporary_path)
    sync_folder(path.parent)
    shutil.rmtree(temporary_path)


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files that interrupted processes left in a folder.

    Call this function only in the one process that is allowed to write to the folder.
    """
    for leftover in folder.glob(".*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()


def _make_temporary_path(path: Path) -> Path:
    """Return a unique hidden path in the folder of ``path``. `remove_temporary_files` recognizes its name."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")


def _write_new_file(path: Path, data: bytes, mode: int = DEFAULT_MODE) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _back_up(path: Path, backup: Path) -> None:
    """Make ``backup`` a hard link to ``path``, or a copy if the file system does not support links."""
    temporary_path = _make_temporary_path(backup)
    try:
        try:
            os.link(path, temporary_path)
        except OSError:
            _write_new_file(temporary_path, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        temporary_path.replace(backup)
    except BaseException:
        temporary_path.unlink(missing_ok=True)
        raise
