"""What apply executes: one verb on one resource, what it needs, what it expects, what undoes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdeclare.core.arguments import Arguments, Inverse
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json


@dataclass(frozen=True, slots=True)
class Operation:
    """One node of the graph that a plan emits and apply steps through.

    id: unique within its plan, readable, equal for equal inputs.
    needs: the operation ids that must have ended well before this one begins, each with the reason.
    follows: those that must be over, however they ended, each with the reason: what tidies up, and
        batches that take turns.
    args: what the verb takes; never a secret's value.
    expect: the live state it touches, as it was when planned (the verb's ``view``).
    inverse: what undoes it, or None where ``irreversible`` says why there is none.
    """

    id: str
    verb: str
    resource: ResourceId
    args: Arguments
    expect: Mapping[str, Json]
    needs: Mapping[str, str] = field(default_factory=dict)
    inverse: Inverse | None = None
    irreversible: str | None = None
    follows: Mapping[str, str] = field(default_factory=dict)

    @property
    def after(self) -> Mapping[str, str]:
        """All that this one comes after, each with the reason."""
        return {**self.follows, **self.needs}
