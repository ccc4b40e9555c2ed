"""Having a folder to oneself: a lock file that dies with its holder, and what is refused in the folder."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import Layout


@contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file; call ``on_wait`` once if somebody else has it, then wait.

    Its folder has to exist. The holder may delete the file.
    """
    descriptor = _acquire_lock(path, on_wait)
    try:
        yield
    finally:
        os.close(descriptor)


def _acquire_lock(path: Path, on_wait: Callable[[], None]) -> int:
    import fcntl  # where Kafka runs, it exists; elsewhere the rest of the package should import

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
        # Whoever held it has deleted the file: what is locked now is nobody's.
        os.close(descriptor)


def _is_current(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


Progress = Callable[[str], None]


def ignore_progress(_: str) -> None:
    """A progress callback that says nothing."""
    return


@contextmanager
def claim_folder(layout: Layout, progress: Progress) -> Iterator[None]:
    """Make the folder if need be and hold its lock; ``sandbox-folder`` if it cannot be used.

    Where the block fails before anything else is in a folder that was made here, the folder goes again.
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
    """The folders that have to be made for this one, it among them, the deepest first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_unused(layout: Layout, created_folders: list[Path]) -> None:
    """Remove folders in which there is nothing but the lock."""
    if [path for path in layout.folder.iterdir() if path != layout.lock]:
        return
    layout.lock.unlink(missing_ok=True)
    for path in created_folders:
        try:
            path.rmdir()
        except OSError:  # someone else has put something there: it stays
            return


def require_empty_folder(layout: Layout) -> None:
    """Raise KdeclareError ``sandbox-folder`` where the folder, which is claimed, holds anything."""
    foreign_files = sorted(p.name for p in layout.folder.iterdir() if p != layout.lock)
    if foreign_files:
        layout.lock.unlink(missing_ok=True)
        raise build_folder_error(layout, f"it is not empty and not a sandbox (it holds {foreign_files[0]})")


def build_folder_error(layout: Layout, reason: str) -> KdeclareError:
    """The error of a folder in which no sandbox can be."""
    return KdeclareError(
        error(
            "sandbox-folder",
            "The sandbox folder cannot be used",
            f"The folder {layout.folder} cannot be used for a sandbox: {reason}.",
            hint="Choose an empty or new folder that can be written to.",
        )
    )
