"""Progress reports of long-running work."""

from typing import Protocol

from kdeclare.core.plans.run import MoveProgress


class Progress(Protocol):
    """A callback that receives progress reports."""

    def __call__(self, what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
        """Report what is being done, how many items are done, and how many there are (0: unknown).

        moves: details of reassignments in progress.
        """


def ignore_progress(what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
    """Discard progress reports."""
