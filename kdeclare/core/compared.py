"""One resource of a plan: what is declared, what is owned, and what the diff says."""

from dataclasses import dataclass

from kdeclare.core.changes import Change
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference


@dataclass(frozen=True, slots=True)
class Compared:
    """One resource in scope: what is declared, what is owned, and what the diff says of the two."""

    id: ResourceId
    desired: Desired | None
    owned: Json
    difference: Difference

    @property
    def change(self) -> Change | None:
        """The change, if the resource is not in order."""
        return self.difference.change
