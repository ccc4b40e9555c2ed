"""A lock file that dies with its holder, for folders that two commands may touch at once."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file; call ``waiting`` once if somebody else has it, then wait.

    Its folder has to exist. The holder may delete the file.
    """
    descriptor = _locked(path, waiting)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path, waiting: Callable[[], None]) -> int:
    import fcntl  # where Kafka runs, it exists; elsewhere the rest of the package should import

    told = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    waiting()
                told = True
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_current(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Whoever held it has deleted the file: what is locked now is nobody's.
        os.close(descriptor)


def _is_current(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
