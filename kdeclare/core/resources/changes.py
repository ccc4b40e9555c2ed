"""The changes that a plan displays. Each change has one resource, an action and field changes."""

from collections.abc import Iterable
from enum import StrEnum

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId


class Action(StrEnum):
    """The action on a resource as a whole."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"
    FORGET = "forget"
    NO_OP = "no-op"


class Reason(StrEnum):
    """The reason why a resource needs a change. Different reasons can lead to the same action."""

    DECLARED = "declared"  # declared, but neither in the cluster nor owned
    CHANGED = "changed"  # the manifests differ from what was last applied
    DRIFTED = "drifted"  # the cluster differs from what was last applied
    MISSING = "missing"  # applied earlier, but no longer in the cluster
    ORPHANED = "orphaned"  # owned, but no longer in the manifests
    ABSENT = "absent"  # a manifest declares that the resource must not exist
    FORGOTTEN = "forgotten"  # released by --forget
    ROLLBACK = "rollback"  # a run is being undone
    ASKED = "asked"  # requested by an ad hoc command, not by a manifest
    ADOPT = "adopt"  # exists, never owned; kdeclare takes ownership
    REPLACED = "replaced"  # --replace requests to delete the resource and to create it again
    RECREATED = "recreated"  # deleted and created again under the same name after it was applied


class Risk(StrEnum):
    """The worst possible effect of a change, from harmless to permanent."""

    SAFE = "safe"
    DISRUPTIVE = "disruptive"  # moves data or changes how brokers work
    DESTRUCTIVE = "destructive"  # can lose records
    IRREVERSIBLE = "irreversible"  # a rollback cannot undo the change


class FieldOp(StrEnum):
    """The operation on a field: an operation of KIP-339 for a config, ``change`` for any other field."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The change of one field of one resource.

    path: ``partitions``, ``configs.retention.ms``, ``replicas.orders-0`` …
    before, after: the complete value before and after the change. None means that the field is not set.
    value: the elements that APPEND adds or SUBTRACT removes; None for any other operation.
    risk: the worst possible effect of changing this field. cause: the reason for this risk, as a sentence;
        empty if the change is safe.
    reason: the reason for this field change, if it differs from the reason for the whole change.
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
    """The change of one resource, or an orphan that the plan does not change (action ``no-op``).

    risk: the highest risk of the change, including its fields.
    blocked: the code of the diagnostic that prevents the change from being applied, if there is one.
    owner: the owner of the resource; None if the resource has no owner.
    description: what the resource is for, according to its manifest; empty if the manifest does not say.
    """

    id: ResourceId
    action: Action
    reason: Reason
    risk: Risk
    fields: tuple[FieldChange, ...] = ()
    source: SourcePosition | None = None
    blocked: str | None = None
    owner: str | None = None
    description: str = ""

    @property
    def risks(self) -> tuple[Risk, ...]:
        """The distinct risks of the change, highest first."""
        present_risks = {self.risk, *(field.risk for field in self.fields)}
        if len(present_risks) == 1:
            return (self.risk,)
        return tuple(risk for risk in reversed(Risk) if risk in present_risks)


def find_highest_risk(fields: Iterable[FieldChange], minimum: Risk = Risk.SAFE) -> Risk:
    """Return the highest risk of these fields, or ``minimum`` if that is higher."""
    order = list(Risk)
    return max((minimum, *(field.risk for field in fields)), key=order.index)
