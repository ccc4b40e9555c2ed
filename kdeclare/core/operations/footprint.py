"""The objects that an operation touches.

The footprints of a plan's operations determine the order of the operations, and reveal contradictions between
them.
"""

from collections.abc import Sequence
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import Pattern


class Access(StrEnum):
    """How an operation relates to an object."""

    CREATE = "create"
    UPDATE = "update"
    """The operation changes the object, which must exist."""
    DELETE = "delete"
    REQUIRES = "requires"
    """The object must exist. If the creation of the object is denied, this operation is denied, too."""
    AFTER = "after"
    """If the plan creates the object, the operation runs after the creation.

    If the plan deletes the object, the operation runs before the deletion.

    Operations that remove a reference to the object also use ``AFTER``.
    """
    MENTIONS = "mentions"
    """The operation only mentions the object's name.

    The object need not exist, and the mention does not affect the order of operations.
    """


@dataclass(frozen=True, slots=True)
class Prefix:
    """All keys that begin with a string; an empty string means all keys."""

    text: str


Key = str | Prefix | Pattern
"""One exact key, all keys with a prefix, or all keys that fully match a regular expression."""


@dataclass(frozen=True, slots=True)
class FootprintEntry:
    """One entry of a footprint.

    sort: the name of the type of object, unique among all providers. If a kind declares such objects, this is
        the name of the kind (``Topic``).
    """

    sort: str
    key: Key
    access: Access


Footprint = Sequence[FootprintEntry]
"""All objects that one operation touches."""
