"""What a person reads in a plan: one resource, its action and its fields."""

from collections.abc import Iterable
from enum import StrEnum

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId


class Action(StrEnum):
    """What happens to a resource as a whole."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    FORGET = "forget"
    NO_OP = "no-op"


class Reason(StrEnum):
    """Why a resource is not in order; apart from the action, as one action can have several reasons."""

    DECLARED = "declared"  # in the manifests, not in the cluster, never owned
    CHANGED = "changed"  # the manifests say something else than was last applied
    DRIFTED = "drifted"  # the cluster has something else than was last applied
    MISSING = "missing"  # applied before, gone from the cluster
    ORPHANED = "orphaned"  # owned, no longer in the manifests
    FORGOTTEN = "forgotten"  # released by --forget
    ROLLBACK = "rollback"  # a run is being undone
    ASKED = "asked"  # the command itself says so, no manifest does
    ADOPT = "adopt"  # it exists and was never owned: kdeclare takes it over
    RECREATED = "recreated"  # deleted and created again under the same name since it was applied


class Risk(StrEnum):
    """The worst that a change can do, from harmless to final."""

    SAFE = "safe"
    DISRUPTIVE = "disruptive"  # moves data or changes how brokers work
    DESTRUCTIVE = "destructive"  # can lose records
    IRREVERSIBLE = "irreversible"  # no rollback brings it back


class FieldOp(StrEnum):
    """How a field changes: a KIP-339 op for a config, ``change`` for anything else."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of one resource.

    path: ``partitions``, ``configs.retention.ms``, ``replicas.orders-0`` …
    before, after: the whole value as it is and as it will be; None is "not set".
    value: the elements of an APPEND or SUBTRACT, else None.
    risk: the worst that this field's change can do. cause: why, in a sentence; empty for a safe one.
    reason: why the field changes, where that is not the reason of the whole change.
    """

    path: str
    op: FieldOp
    before: JsonValue
    after: JsonValue
    value: JsonValue = None
    risk: Risk = Risk.SAFE
    cause: str = ""
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One resource that is not in order, or an orphan (action ``no-op``).

    risk: the highest of all risks that it has, its fields' included.
    blocked: the code of the diagnostic that keeps it from being applied, if one does.
    """

    id: ResourceId
    action: Action
    reason: Reason
    risk: Risk
    fields: tuple[FieldChange, ...] = ()
    source: SourcePosition | None = None
    blocked: str | None = None

    @property
    def risks(self) -> tuple[Risk, ...]:
        """All risks that the change has, from the highest down, each once."""
        present_risks = {self.risk, *(field.risk for field in self.fields)}
        if len(present_risks) == 1:
            return (self.risk,)
        return tuple(risk for risk in reversed(Risk) if risk in present_risks)


def find_highest_risk(fields: Iterable[FieldChange], minimum: Risk = Risk.SAFE) -> Risk:
    """Return the highest risk of these fields, and no lower than ``minimum``."""
    order = list(Risk)
    return max((minimum, *(field.risk for field in fields)), key=order.index)
