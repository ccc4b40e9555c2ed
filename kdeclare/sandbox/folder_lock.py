"""Having a folder to oneself: a lock file that dies with its holder, and what is refused in the folder."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import Layout


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


Progress = Callable[[str], None]


def unheard(_: str) -> None:
    """A progress callback that says nothing."""
    return


@contextmanager
def claimed(layout: Layout, progress: Progress) -> Iterator[None]:
    """Make the folder if need be and hold its lock; ``sandbox-folder`` if it cannot be used.

    Where the block fails before anything else is in a folder that was made here, the folder goes again.
    """
    with ExitStack() as stack:
        try:
            missing = _missing(layout.folder)
            layout.folder.mkdir(parents=True, exist_ok=True)
            told = "waiting for another command that uses this sandbox"
            stack.enter_context(held(layout.lock, lambda: progress(told)))
        except OSError as problem:
            raise unusable(layout, str(problem.strerror or problem)) from problem
        try:
            yield
        except BaseException:
            if missing:
                _remove_unused(layout, missing)
            raise


def _missing(folder: Path) -> list[Path]:
    """The folders that have to be made for this one, it among them, the deepest first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_unused(layout: Layout, made: list[Path]) -> None:
    """Remove folders in which there is nothing but the lock."""
    if [path for path in layout.folder.iterdir() if path != layout.lock]:
        return
    layout.lock.unlink(missing_ok=True)
    for path in made:
        try:
            path.rmdir()
        except OSError:  # someone else has put something there: it stays
            return


def refuse_foreign(layout: Layout) -> None:
    """Raise KdeclareError ``sandbox-folder`` where the folder, which is claimed, holds anything."""
    others = sorted(p.name for p in layout.folder.iterdir() if p != layout.lock)
    if others:
        layout.lock.unlink(missing_ok=True)
        raise unusable(layout, f"it is not empty and not a sandbox (it holds {others[0]})")


def unusable(layout: Layout, why: str) -> KdeclareError:
    """The error of a folder in which no sandbox can be."""
    return KdeclareError(
        error(
            "sandbox-folder",
            "The sandbox folder cannot be used",
            f"The folder {layout.folder} cannot be used for a sandbox: {why}.",
            hint="Choose an empty or new folder that can be written to.",
        )
    )
