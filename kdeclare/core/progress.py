"""Progress reports of long-running work."""

from typing import Protocol

from kdeclare.core.plans.run import MoveProgress


class Progress(Protocol):
    """A callback that receives progress reports."""

    def __call__(self, what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
        """Report the activity, the number of finished items, and the total number of items (0 if unknown).

        moves: details of reassignments in progress.
        """


def ignore_progress(what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
    """Discard progress reports."""
