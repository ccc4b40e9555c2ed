"""The impact of a plan on records, clients and members of the systems, as reported by the systems."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue


class ObservationLevel(StrEnum):
    """How important an observation is for reviewers, from most to least important."""

    LOSS = "loss"
    """Data is lost, or clients stop working."""
    EFFECT = "effect"
    """Clients or members of the system notice the change."""
    UNKNOWN = "unknown"
    """The effect could not be determined, for example because a permission is missing."""
    INFO = "info"
    """A figure that helps to assess the change."""

    @property
    def rank(self) -> int:
        """The rank in the order of importance; 0 is the most important level."""
        return tuple(ObservationLevel).index(self)


@dataclass(frozen=True, slots=True)
class Observation:
    """One effect of one change, as of the time when the plan was made. Apply does not check it again.

    resource: the id of the changed resource.
    code: the type of the effect, such as ``deletable-records``. It stays the same in all versions.
    text: the effect as a sentence for people.
    path: the path of the changed field; None if the observation is about the whole resource.
    figures: the numbers in the sentence and their bounds, by name, for scripts. A bound that is not known is
        null.
    """

    resource: str
    code: str
    level: ObservationLevel
    text: str
    path: str | None = None
    figures: Mapping[str, JsonValue] = field(default_factory=dict)
