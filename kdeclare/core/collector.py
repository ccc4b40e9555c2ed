"""Collectors: how the live state of one system is read in bulk."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from kdeclare.core.parts import Connections


class Selection(Protocol):
    """What to read of one sort of live state: a frozen value of its provider."""

    def merge(self, others: Sequence[Self]) -> Self:
        """Return one selection of all that this one and the others select."""


Selections = tuple[Selection, ...]
"""What something reads; several selections of the same class are merged before anything is read."""

_Selected = TypeVar("_Selected", bound=Selection)


@dataclass(frozen=True, slots=True)
class Collector(Generic[_Selected]):
    """Reads one sort of live state.

    selects: the class of its selections.
    read: reads all that a selection names in as few requests as possible. What it returns becomes the part
        of the `LiveState` of its class. Raises Fault when the system does not answer.
    """

    selects: type[_Selected]
    read: Callable[[Connections, _Selected], object]

    def merge(self, selections: Iterable[Selection]) -> _Selected | None:
        """Merge the selections of this collector's class; None where there are none."""
        mine = [selection for selection in selections if isinstance(selection, self.selects)]
        if len(mine) > 1:
            return mine[0].merge(mine[1:])
        return mine[0] if mine else None

    def collect(self, connections: Connections, selections: Iterable[Selection]) -> object | None:
        """Read what is selected; None where nothing is. Raises Fault."""
        merged = self.merge(selections)
        return None if merged is None else self.read(connections, merged)
