"""What moves of replicas leave to be done once they are over, as sections of the state's pending cleanup."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.jsontypes import Json
from kdeclare.core.state import PendingCleanup, State

Entries = Mapping[str, Mapping[str, Json]]
"""Throttle entries: config resource as text (``BROKER/1``, ``TOPIC/orders``) to key to what was set there.

A rate is a text (bytes a second), or several where it is not known which of them took effect. A list is
{elements: [``partition:broker``, …], fresh}; ``fresh`` says that nothing was set before.
"""

_THROTTLES, _ELECTIONS, _MOVES = "throttles", "elections", "moves"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is still to be done once moves that go on in the cluster are over.

    throttles: what kdeclare has set and not removed yet.
    elections: partitions (``topic-n``) whose preferred leader is to be elected, with that leader.
    moves: partitions that kdeclare has begun to move, and left to the cluster.
    """

    throttles: Entries = field(default_factory=dict)
    elections: Mapping[str, int] = field(default_factory=dict)
    moves: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.throttles or self.elections or self.moves)

    def write_to(self, cleanup: PendingCleanup) -> PendingCleanup:
        """Return the pending cleanup with these sections."""
        mine = {_THROTTLES: self.throttles, _ELECTIONS: self.elections, _MOVES: list(self.moves)}
        others = {name: section for name, section in cleanup.items() if name not in mine}
        return {**others, **mine} if self else others


def read_leftovers(cleanup: PendingCleanup) -> Leftovers:
    """Return the sections of moves. Raises KdeclareError where one is not of its type."""
    return Leftovers(
        _section(cleanup, _THROTTLES, dict),
        _section(cleanup, _ELECTIONS, dict),
        tuple(_section(cleanup, _MOVES, list)),
    )


def leftovers_of(state: State | None) -> Leftovers:
    """Return what moves have left in a state; nothing where there is no state. Raises KdeclareError."""
    return read_leftovers(state.pending_cleanup) if state is not None else Leftovers()


def update_leftovers(cleanup: PendingCleanup, change: Callable[[Leftovers], Leftovers]) -> PendingCleanup:
    """Return the pending cleanup with the sections of moves changed."""
    return change(read_leftovers(cleanup)).write_to(cleanup)


def _section(cleanup: PendingCleanup, name: str, kind: type) -> Json:
    section = cleanup.get(name, kind())
    if not isinstance(section, kind):
        raise KdeclareError(
            error(
                "state-corrupt",
                "Stored state is damaged",
                f"In its 'leftovers', '{name}' is not of its type.",
                hint="Restore state.json.backup, or the version of the state that was committed or saved.",
            )
        )
    return section
