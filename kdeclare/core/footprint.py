"""What an operation touches: objects by their keys, in its own system and others, and what it does to each.

References, and not names that happen to be equal, join the operations of a plan: order, and what contradicts
itself, follow from footprints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kdeclare.core.patterns import Pattern


class Access(StrEnum):
    """What an operation does to an object, or needs of it."""

    CREATE = "create"
    UPDATE = "update"
    """It changes the object, which must exist."""
    DELETE = "delete"
    REQUIRES = "requires"
    """The object must exist: a creation that is denied takes the operation with it."""
    AFTER = "after"
    """It comes after a creation of the object, and before a deletion; it does without either.

    So does what ends a use of the object: a deletion of the user, or an update that refers to it no longer.
    """
    MENTIONS = "mentions"
    """It names the object, which need not exist; nothing follows for the order."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """All keys that begin with a text; an empty one stands for all."""

    text: str


Key = str | Prefix | Pattern
"""One key as it is, all with a prefix, or all that an expression matches as a whole."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One entry of a footprint.

    sort: what keys are of, in a name that is unique among all providers: of the kind whose resources are
        such objects, where there is one (``Topic``).
    """

    sort: str
    key: Key
    access: Access


Footprint = Sequence[Touch]
"""All that one operation touches."""
