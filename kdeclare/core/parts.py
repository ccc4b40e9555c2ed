"""Values of several providers side by side, each found by its class.

The core and the engine pass them on without knowing what is in them; a provider asks for its own.
"""

from collections.abc import Callable, Mapping
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

    def get(self, part_type: type[_Part]) -> _Part:
        """Return the value of this class. Raises LookupError where there is none."""
        part = self._values.get(part_type)
        if not isinstance(part, part_type):
            raise LookupError(f"no {part_type.__name__} among {', '.join(s.__name__ for s in self._values)}")
        return part

    def find(self, part_type: type[_Part]) -> _Part | None:
        """Return the value of this class, or None."""
        part = self._values.get(part_type)
        return part if isinstance(part, part_type) else None

    def with_part(self, value: object) -> Self:
        """Return the same parts with this one added, or in place of the one of its class."""
        return type(self)(*self._values.values(), value)


class LiveState(Parts):
    """What was read of the systems, as it was at one time: one part per collector that read anything."""


Openers = Mapping[type[object], Callable[[], object]]
"""What opens connections, by their class."""


class Connections(Parts):
    """The connections to the systems, one per provider. Some are opened when they are first asked for."""

    __slots__ = ("_openers", "_unnamed")

    def __init__(
        self, *values: object, openers: Openers | None = None, unnamed: Openers | None = None
    ) -> None:
        """Hold open connections, and by class what gives others, the same one each time.

        An opener raises KdeclareError for a system that cannot be connected to.
        unnamed: openers of systems that the environment does not name. They take no part by themselves, but
            what asks for one learns why there is none.
        """
        super().__init__(*values)
        self._openers = dict(openers or {})
        self._unnamed = dict(unnamed or {})

    def get(self, part_type: type[_Part]) -> _Part:
        """Return the connection of this class. Raises KdeclareError where it cannot be opened."""
        opener = self._openers.get(part_type) or self._unnamed.get(part_type)
        if opener is None or part_type in self._values:
            return super().get(part_type)
        connection = opener()
        if not isinstance(connection, part_type):
            raise TypeError(f"a {type(connection).__name__} was opened, not a {part_type.__name__}")
        return connection

    def find(self, part_type: type[_Part]) -> _Part | None:
        """Return the connection of this class; None where no provider has one. Raises KdeclareError."""
        return self.get(part_type) if self.offers(part_type) else None

    def offers(self, sort: type[object]) -> bool:
        """Whether there is a connection of this class, opened or not."""
        return sort in self._values or sort in self._openers

    def is_unconfigured(self, connection_type: type[object]) -> bool:
        """Whether a connection of this class leads to a system that the environment does not name."""
        return connection_type in self._unnamed and not self.offers(connection_type)

    @property
    def is_empty(self) -> bool:
        """Whether they lead nowhere."""
        return not self._values and not self._openers and not self._unnamed

    def holds(self, sort: type[object]) -> bool:
        """Whether a connection of this class is there without being opened."""
        return sort in self._values

    def with_openers(self, openers: Openers, unnamed: Openers | None = None) -> Self:
        """Return the same connections, and what opens those that are not among them.

        unnamed: what opens the connections to systems that the environment does not name.
        """
        return type(self)(
            *self._values.values(),
            openers={**self._openers, **openers},
            unnamed={**self._unnamed, **(unnamed or {})},
        )

    def with_part(self, value: object) -> Self:
        """Return the same connections with this one in place of what would be opened of its class."""
        return type(self)(*self._values.values(), value, openers=self._openers, unnamed=self._unnamed)


class PlanContext(Parts):
    """What providers have prepared for one plan, from all that is desired and live."""


class PlanOptions(Parts):
    """What people have chosen for one plan, beyond what holds for all kinds."""
