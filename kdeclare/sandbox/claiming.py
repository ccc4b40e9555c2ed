"""Having a folder to oneself: the lock, and what is refused in it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import Layout
from kdeclare.sandbox.locking import held

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
