"""A lock file that the operating system locks (flock), so that the lock ends when its holder exits.

The text in the file is only for messages. The file is never removed, so all processes that open it lock the
same inode. Only `break_lock` replaces the inode. Therefore a lock is valid only while the path still refers
to the locked inode.
"""

import fcntl
import getpass
import json
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from kdeclare.core.plans.state import LockInfo
from kdeclare.engine.state.durable_files import make_folder, replace_file, write_all
from kdeclare.engine.state.problems import (
    build_holder_changed_error,
    build_lock_lost_error,
    build_locked_error,
    explain_os_errors,
)

_UNKNOWN = LockInfo("an unknown user", 0, "an unknown command", "an unknown time")


def build_own_lock_info(command: str) -> LockInfo:
    """Return the current user, host, process and time as the holder of a lock."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = str(os.getuid())
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return LockInfo(f"{user}@{socket.gethostname()}", os.getpid(), command, since)


class FileLock:
    """The lock at one path. The file and its folder are created when the lock is first acquired."""

    def __init__(self, path: Path) -> None:
        """Create an object for the lock at ``path``. The file system is not accessed yet."""
        self._path = path
        self._held: int | None = None

    @contextmanager
    def hold(self, command: str) -> Iterator[None]:
        """Hold the lock during the ``with`` block. Raises KdeclareError as described at `StateStore.lock`."""
        while (fd := self._acquire()) is None:
            holder = self.read_holder()
            if holder is not None:
                raise build_locked_error(holder)
        try:
            self._held = fd
            with explain_os_errors("lock", self._path):
                _write_info(fd, build_own_lock_info(command))
            yield
        finally:
            self._held = None
            with suppress(OSError):
                os.ftruncate(fd, 0)
            os.close(fd)

    def check(self) -> None:
        """Raise KdeclareError if this object held the lock and another process broke it."""
        with explain_os_errors("read", self._path):
            lost = self._held is not None and not self._is_current(self._held)
        if lost:
            raise build_lock_lost_error()

    def read_holder(self) -> LockInfo | None:
        """Return the current holder of the lock; None if the lock is free. This needs only read access."""
        for _ in range(20):
            with explain_os_errors("read", self._path):
                info, is_certain = self._read_info()
            if is_certain:
                return info
            time.sleep(0.005)  # the lock is changing hands, or its new holder has not written its info yet
        return _UNKNOWN

    def break_lock(self, holder: LockInfo) -> None:
        """Break the lock of ``holder``. Raises KdeclareError as described at `StateStore.break_lock`."""
        current_holder = self.read_holder()
        if current_holder != holder:
            raise build_holder_changed_error(holder, current_holder)
        with explain_os_errors("write", self._path):
            replace_file(self._path, b"")

    def _acquire(self) -> int | None:
        """Return the descriptor of the locked file; None if another process holds the lock."""
        with explain_os_errors("lock", self._path):
            make_folder(self._path.parent)
            while True:
                fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                try:
                    if _try_flock(fd, fcntl.LOCK_EX):
                        if self._is_current(fd):
                            locked, fd = fd, -1
                            return locked
                    elif not _try_flock(fd, fcntl.LOCK_SH) and self._is_current(fd):
                        return None
                finally:
                    if fd >= 0:
                        os.close(fd)
                # Another process has just broken the lock, or held it briefly to read the holder. Try again.
                time.sleep(random.uniform(0.001, 0.01))

    def _read_info(self) -> tuple[LockInfo | None, bool]:
        """Return the holder of the lock (None if the lock is free), and whether this result is certain."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None, True
        try:
            if _try_flock(fd, fcntl.LOCK_SH):
                return None, True
            info = LockInfo(**json.loads(os.read(fd, 65536)))
        except (ValueError, TypeError):
            return None, False
        else:
            return info, self._is_current(fd)
        finally:
            os.close(fd)

    def _is_current(self, fd: int) -> bool:
        """Whether the path still refers to the file that ``fd`` has open."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(fd))
        except FileNotFoundError:
            return False


def _try_flock(fd: int, lock_mode: int) -> bool:
    try:
        fcntl.flock(fd, lock_mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_info(fd: int, info: LockInfo) -> None:
    text = json.dumps({"who": info.who, "pid": info.pid, "what": info.what, "since": info.since})
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    write_all(fd, text.encode() + b"\n")
