"""Values of several providers side by side, each found by its class.

The core and the engine pass them on without knowing what is in them; a provider asks for its own.
"""

from typing import Self, TypeVar

_Part = TypeVar("_Part")


class Parts:
    """At most one value of each class. Immutable."""

    __slots__ = ("_values",)

    def __init__(self, *values: object) -> None:
        """Hold these values. A later one takes the place of an earlier one of the same class."""
        self._values = {type(value): value for value in values}

    def __eq__(self, other: object) -> bool:
        """Whether the other holds equal values."""
        return isinstance(other, Parts) and type(self) is type(other) and self._values == other._values

    def __hash__(self) -> int:
        """By the classes of the values: the values themselves need not be hashable."""
        return hash(frozenset(self._values))

    def __repr__(self) -> str:
        """As it would be written."""
        return f"{type(self).__name__}({', '.join(map(repr, self._values.values()))})"

    def get(self, sort: type[_Part]) -> _Part:
        """Return the value of this class. Raises LookupError where there is none."""
        found = self._values.get(sort)
        if not isinstance(found, sort):
            raise LookupError(f"no {sort.__name__} among {', '.join(s.__name__ for s in self._values)}")
        return found

    def find(self, sort: type[_Part]) -> _Part | None:
        """Return the value of this class, or None."""
        found = self._values.get(sort)
        return found if isinstance(found, sort) else None

    def with_part(self, value: object) -> Self:
        """Return the same parts with this one added, or in place of the one of its class."""
        return type(self)(*self._values.values(), value)


class LiveState(Parts):
    """What was read of the systems, as it was at one time: one part per collector that read anything."""


class Connections(Parts):
    """The open connections to the systems, one per provider."""


class PlanContext(Parts):
    """What providers have prepared for one plan, from all that is desired and live."""


class PlanOptions(Parts):
    """What people have chosen for one plan, beyond what holds for all kinds."""
