"""Exclusive use of a folder: a lock file that the system releases when its holder ends, and folder checks."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import Layout


@contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file. If another process holds it, call ``on_wait`` once and wait.

    The folder of the file must exist. The holder may delete the file.
    """
    descriptor = _acquire_lock(path, on_wait)
    try:
        yield
    finally:
        os.close(descriptor)


def _acquire_lock(path: Path, on_wait: Callable[[], None]) -> int:
    import fcntl  # imported here because it exists only on POSIX; the package must import elsewhere

    has_reported = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not has_reported:
                    on_wait()
                has_reported = True
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_current(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # The previous holder has deleted the file, so the lock on it has no effect.
        os.close(descriptor)


def _is_current(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


Progress = Callable[[str], None]


def ignore_progress(_: str) -> None:
    """Discard progress reports."""
    return


@contextmanager
def claim_folder(layout: Layout, progress: Progress) -> Iterator[None]:
    """Create the folder if needed and hold its lock. Raises ``sandbox-folder`` if it cannot be used.

    If the block fails while a folder created here is still empty, the folder is deleted again.
    """
    with ExitStack() as stack:
        try:
            missing_folders = _list_missing_folders(layout.folder)
            layout.folder.mkdir(parents=True, exist_ok=True)
            wait_message = "waiting for another command that uses this sandbox"
            stack.enter_context(hold_lock(layout.lock, lambda: progress(wait_message)))
        except OSError as problem:
            raise build_folder_error(layout, str(problem.strerror or problem)) from problem
        try:
            yield
        except BaseException:
            if missing_folders:
                _remove_unused(layout, missing_folders)
            raise


def _list_missing_folders(folder: Path) -> list[Path]:
    """Return the folders that must be created for this one, including itself, deepest first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_unused(layout: Layout, created_folders: list[Path]) -> None:
    """Remove folders that contain nothing but the lock."""
    if [path for path in layout.folder.iterdir() if path != layout.lock]:
        return
    layout.lock.unlink(missing_ok=True)
    for path in created_folders:
        try:
            path.rmdir()
        except OSError:  # another process has created a file there, so the folder stays
            return


def require_empty_folder(layout: Layout) -> None:
    """Raise KdeclareError ``sandbox-folder`` if the folder contains anything but the lock."""
    foreign_files = sorted(p.name for p in layout.folder.iterdir() if p != layout.lock)
    if foreign_files:
        layout.lock.unlink(missing_ok=True)
        raise build_folder_error(layout, f"it is not a sandbox, but contains {foreign_files[0]}")


def build_folder_error(layout: Layout, reason: str) -> KdeclareError:
    """Return the error about a folder that cannot be used for a sandbox."""
    return KdeclareError(
        error(
            "sandbox-folder",
            "Sandbox folder cannot be used",
            f"The folder {layout.folder} cannot be used for a sandbox: {reason}.",
            hint="Choose a new or empty folder that is writable.",
        )
    )
