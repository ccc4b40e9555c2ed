"""Lock the folder of a sandbox for exclusive use, and check whether the folder can be used.

The operating system releases the lock when the process that holds the lock ends.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import Layout


@contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock on the file ``path``. If another process holds the lock, call ``on_wait`` and wait.

    The folder of the file must exist. The process that holds the lock can delete the file.
    """
    descriptor = _acquire_lock(path, on_wait)
    try:
        yield
    finally:
        os.close(descriptor)


def _acquire_lock(path: Path, on_wait: Callable[[], None]) -> int:
    import fcntl  # only on POSIX, but this module must be importable on all systems

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
        # The previous holder has deleted the file, so this lock does not exclude other processes.
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
    """Create the folder of a sandbox if it does not exist, and hold its lock during the ``with`` block.

    If this function creates the folder, and the ``with`` block fails before it adds files, the folder is
    deleted again. Raises KdeclareError ``sandbox-folder`` if the folder cannot be used.
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
    """Return the folders that do not exist, among ``folder`` and its parent folders, deepest folder first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_unused(layout: Layout, created_folders: list[Path]) -> None:
    """Remove the folders in ``created_folders`` if the sandbox folder contains nothing but the lock file.

    created_folders: the sandbox folder and those of its parent folders that the same command created.
    """
    if [path for path in layout.folder.iterdir() if path != layout.lock]:
        return
    layout.lock.unlink(missing_ok=True)
    for path in created_folders:
        try:
            path.rmdir()
        except OSError:  # a different process has created a file in the folder
            return


def require_empty_folder(layout: Layout) -> None:
    """Raise KdeclareError ``sandbox-folder`` if the folder contains more than the lock file."""
    foreign_files = sorted(p.name for p in layout.folder.iterdir() if p != layout.lock)
    if foreign_files:
        layout.lock.unlink(missing_ok=True)
        raise build_folder_error(layout, f"it contains {foreign_files[0]} and is not a sandbox")


def build_folder_error(layout: Layout, reason: str) -> KdeclareError:
    """Build the error for a folder that cannot be used for a sandbox."""
    return KdeclareError(
        error(
            "sandbox-folder",
            "Sandbox folder cannot be used",
            f"The folder {layout.folder} cannot be used for a sandbox: {reason}.",
            hint="Choose a new folder, or an empty folder that you can write to.",
        )
    )
