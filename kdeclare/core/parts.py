"""Containers with at most one value per class. Each provider can add values of its own classes.

The core and the engine do not inspect the values. A provider looks up its own value by class.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Self, TypeVar

_Part = TypeVar("_Part")


class Parts:
    """An immutable container with at most one value per class."""

    __slots__ = ("_values",)

    def __init__(self, *values: object) -> None:
        """Store the values. A later value replaces an earlier value of the same class."""
        self._values = {type(value): value for value in values}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts) and type(self) is type(other) and self._values == other._values

    def __hash__(self) -> int:
        """Hash the classes of the values, because the values themselves might not be hashable."""
        return hash(frozenset(self._values))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._values.values()))})"

    def get(self, part_type: type[_Part]) -> _Part:
        """Return the value of this class. Raises LookupError if the container has no such value."""
        part = self._values.get(part_type)
        if not isinstance(part, part_type):
            raise LookupError(f"no {part_type.__name__} among {', '.join(s.__name__ for s in self._values)}")
        return part

    def find(self, part_type: type[_Part]) -> _Part | None:
        """Return the value of this class; None if the container has no value of this class."""
        part = self._values.get(part_type)
        return part if isinstance(part, part_type) else None

    def __iter__(self) -> Iterator[object]:
        """Iterate over the values."""
        return iter(self._values.values())

    def with_part(self, value: object) -> Self:
        """Return a copy that contains this value instead of any other value of the same class."""
        return type(self)(*self._values.values(), value)


class LiveState(Parts):
    """The live state, with one value for each collector that has read anything."""


Openers = Mapping[type[object], Callable[[], object]]
"""Functions that open connections, by connection class."""


class SystemSettings(Enum):
    """What the environment contains about a system."""

    PRESENT = "present"
    """The environment contains settings for the system."""
    DEFAULT = "default"
    """The environment contains no settings for the system. The system can be used with default settings."""
    MISSING = "missing"
    """The environment does not configure the system. Connecting raises an error that explains this."""


class Connections(Parts):
    """The connections to the systems, one per provider. Some connections are opened on first use."""

    __slots__ = ("_openers", "_settings")

    def __init__(
        self,
        *values: object,
        openers: Openers | None = None,
        settings: Mapping[type[object], SystemSettings] | None = None,
    ) -> None:
        """Store open connections, and functions that open the remaining connections.

        openers: functions by connection class. A function returns the same connection each time, and raises
            KdeclareError if it cannot connect.
        settings: what the environment contains about the systems of ``openers``, by connection class; by
            default, their settings are present.
        """
        super().__init__(*values)
        self._openers = dict(openers or {})
        self._settings = dict(settings or {})

    def get(self, part_type: type[_Part]) -> _Part:
        """Return the connection of the given class.

        Raises KdeclareError if the connection cannot be opened.
        """
        opener = self._openers.get(part_type)
        if opener is None or part_type in self._values:
            return super().get(part_type)
        connection = opener()
        if not isinstance(connection, part_type):
            raise TypeError(f"expected a {part_type.__name__}, but a {type(connection).__name__} was opened")
        return connection

    def find(self, part_type: type[_Part]) -> _Part | None:
        """Return the connection of this class, or None if `offers` returns False for this class.

        Raises KdeclareError if the connection cannot be opened.
        """
        return self.get(part_type) if self.offers(part_type) else None

    def offers(self, connection_type: type[object]) -> bool:
        """Whether a connection of this class is open or can be opened."""
        return self._find_settings(connection_type) in {SystemSettings.PRESENT, SystemSettings.DEFAULT}

    def is_unconfigured(self, connection_type: type[object]) -> bool:
        """Whether a connection of this class needs settings that the environment does not contain."""
        return self._find_settings(connection_type) is SystemSettings.MISSING

    def has_settings(self, connection_type: type[object]) -> bool:
        """Whether there is a connection of this class, open or with settings in the environment."""
        return self._find_settings(connection_type) is SystemSettings.PRESENT

    def _find_settings(self, connection_type: type[object]) -> SystemSettings | None:
        if connection_type in self._values:
            return SystemSettings.PRESENT  # the connection is already open
        if connection_type not in self._openers:
            return None
        return self._settings.get(connection_type, SystemSettings.PRESENT)

    @property
    def is_empty(self) -> bool:
        """Whether there are no connections and no functions that open connections."""
        return not self._values and not self._openers

    def holds(self, sort: type[object]) -> bool:
        """Whether a connection of this class is already open."""
        return sort in self._values

    def with_openers(
        self, openers: Openers, settings: Mapping[type[object], SystemSettings] | None = None
    ) -> Self:
        """Return the same connections with additional functions that open connections.

        settings: see the class.
        """
        return type(self)(
            *self._values.values(),
            openers={**self._openers, **openers},
            settings={**self._settings, **(settings or {})},
        )

    def with_part(self, value: object) -> Self:
        """Return a copy with this open connection instead of any other connection of the same class."""
        return type(self)(*self._values.values(), value, openers=self._openers, settings=self._settings)


class PlanContext(Parts):
    """Results that providers compute once per plan from all desired resources and the live state."""


class SharedReads:
    """Data that one step of planning has read from the systems, so that later steps need not read it again.

    Each provider adds objects of its own classes.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[type[object], object] = {}

    def get(self, part_type: type[_Part], create: Callable[[], _Part]) -> _Part:
        """Return the instance of ``part_type``. On the first call, create the instance and keep it."""
        part = self._values.get(part_type)
        if isinstance(part, part_type):
            return part
        created = create()
        self._values[part_type] = created
        return created


class PlanOptions(Parts):
    """The options that providers define, with their values for one plan."""
