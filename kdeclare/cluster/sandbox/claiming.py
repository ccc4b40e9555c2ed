"""Having a folder to oneself: the lock, and what is refused in it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from kdeclare.cluster.sandbox.layout import Layout
from kdeclare.cluster.sandbox.locking import held
from kdeclare.model.diagnostics import KdeclareError, error

Progress = Callable[[str], None]


def unheard(_: str) -> None:
    """A progress callback that says nothing."""
    return


@contextmanager
def claimed(layout: Layout, progress: Progress) -> Iterator[None]:
    """Make the folder if need be and hold its lock; ``sandbox-folder`` if it cannot be used."""
    with ExitStack() as stack:
        try:
            layout.folder.mkdir(parents=True, exist_ok=True)
            told = "waiting for another command that uses this sandbox"
            stack.enter_context(held(layout.lock, lambda: progress(told)))
        except OSError as problem:
            raise unusable(layout, str(problem.strerror or problem)) from problem
        yield


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
