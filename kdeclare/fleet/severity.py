"""Rate how urgent a finding is."""

from kdeclare.core.resources.changes import Action, FieldChange, Risk
from kdeclare.core.resources.plan_capabilities import assess_field
from kdeclare.fleet.findings import FindingKind, FindingSeverity

_BY_RISK = {
    Risk.SAFE: FindingSeverity.LOW,
    Risk.DISRUPTIVE: FindingSeverity.MEDIUM,
    Risk.DESTRUCTIVE: FindingSeverity.HIGH,
    Risk.IRREVERSIBLE: FindingSeverity.HIGH,
}


def rate_change(kind: str, field: FieldChange, finding: FindingKind) -> FindingSeverity:
    """Rate a field whose live value differs from its declared value.

    A `CHANGED` finding is rated by the risk of the change that was made outside kdeclare, which is the
    reverse of the change that an apply would make. For example, shortening the retention can cause records to
    be deleted, but changing the compression type cannot. All other findings are LOW.

    kind: the kind of the resource. field: the change that an apply would make.
    """
    if finding is not FindingKind.CHANGED:
        return FindingSeverity.LOW
    made_outside = FieldChange(
        field.path, field.op, field.after, field.before, field.value, reason=field.reason
    )
    return _BY_RISK[assess_field(kind, Action.UPDATE, made_outside).risk]
