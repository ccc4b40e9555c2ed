"""How long work reports its progress."""

from typing import Protocol

from kdeclare.core.plans.run import MoveProgress


class Progress(Protocol):
    """What long work tells about itself."""

    def __call__(self, what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
        """What is being done, how much of it is done and how much there is (0: nobody knows).

        moves: more about replicas on their way.
        """


def ignore_progress(what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
    """A `Progress` for what nobody watches."""
