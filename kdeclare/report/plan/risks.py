"""Find the risks of a plan that reviewers must see. All reports show them in the same order."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kdeclare.core.diagnostics import Diagnostic, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.resources.changes import Action, Change, FieldChange, Risk
from kdeclare.core.resources.plan_capabilities import (
    find_deletion_cause,
)
from kdeclare.report.elements.diagnostics_text import select_notable_verdicts
from kdeclare.report.elements.values import join_nonempty, sanitize_for_terminal, strip_configs_prefix

SEVERE_RISKS = (Risk.DESTRUCTIVE, Risk.IRREVERSIBLE)
_RISKS_BY_SEVERITY = tuple(reversed(Risk))
_MAX_REASONS = 3
_MAX_NAMED_FIELDS = 4


@dataclass(frozen=True, slots=True)
class RiskCause:
    """One risk of a change.

    cause: a sentence that explains the risk; may be empty.
    paths: the paths of the affected fields.
    """

    risk: Risk
    cause: str
    paths: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The cause and the affected fields, on one line."""
        names = [sanitize_for_terminal(strip_configs_prefix(path)) for path in self.paths[:_MAX_NAMED_FIELDS]]
        omitted_count = len(self.paths) - _MAX_NAMED_FIELDS
        field_names = join_nonempty([*names, f"{omitted_count:,} more" if omitted_count > 0 else ""])
        return (
            f"{sanitize_for_terminal(self.cause)} ({field_names})"
            if field_names
            else sanitize_for_terminal(self.cause)
        )


def list_risks(plan: Plan) -> list[Diagnostic | Verdict | Change]:
    """Return the risks of a plan in this order:

    1. changes that delete a resource
    2. errors, then denials, which block changes
    3. blocked changes without a diagnostic or verdict that explains the reason
    4. changes that cannot be undone or can lose records
    """
    blocking = [d for d in sort_diagnostics(plan.diagnostics) if d.is_blocking]
    denial_verdicts = [v for v in select_notable_verdicts(plan.verdicts) if v.is_denial]
    explained_resources = {d.resource for d in blocking} | {v.resource for v in denial_verdicts}
    blocked = [c for c in plan.changes if c.blocked and str(c.id) not in explained_resources]
    deletions = [c for c in plan.changes if is_deletion(c)]
    severe_changes = (
        c for c in plan.changes if not c.blocked and c.action is not Action.NO_OP and c.risk in SEVERE_RISKS
    )
    other_changes = sort_by_risk(c for c in severe_changes if not is_deletion(c))
    errors = [d for d in blocking if d.is_error]
    denial_diagnostics = [d for d in blocking if not d.is_error]
    return [*deletions, *errors, *denial_verdicts, *denial_diagnostics, *blocked, *other_changes]


def is_deletion(change: Change) -> bool:
    """Whether applying the plan deletes the resource, or deletes and re-creates it.

    A blocked change deletes nothing.
    """
    return change.action in (Action.DELETE, Action.REPLACE) and not change.blocked


def sort_deletions_first(changes: Iterable[Change]) -> list[Change]:
    """Return the deletions, then all other changes, each in the given order."""
    return sorted(changes, key=lambda c: not is_deletion(c))


def sort_by_risk(changes: Iterable[Change]) -> list[Change]:
    """Sort changes: deletions, then blocked changes, then all other changes, the highest risk first.

    Changes with the same risk keep their order.
    """
    return sorted(
        changes, key=lambda c: (not is_deletion(c), not c.blocked, _RISKS_BY_SEVERITY.index(c.risk))
    )


def list_risk_causes(change: Change) -> list[RiskCause]:
    """Return the risks of a change with the affected fields, the highest risk first. Omit the risk "safe"."""
    if change.risks == (Risk.SAFE,):
        return []
    paths_by_cause: dict[tuple[Risk, str], list[str]] = defaultdict(list)
    if change.risk not in {field.risk for field in change.fields}:
        paths_by_cause[change.risk, _get_resource_cause(change)] = []
    for field in change.fields:
        paths_by_cause[field.risk, field.cause].append(field.path)
    causes = [RiskCause(risk, cause, tuple(paths)) for (risk, cause), paths in paths_by_cause.items()]
    return sorted(
        (c for c in causes if c.risk is not Risk.SAFE), key=lambda c: _RISKS_BY_SEVERITY.index(c.risk)
    )


def format_field_risk(field: FieldChange) -> str:
    """Return the risk of a field, with the cause if the risk is severe; empty if the field is safe."""
    if field.risk is Risk.SAFE:
        return ""
    return (
        f"{field.risk.value}: {field.cause}"
        if field.cause and field.risk in SEVERE_RISKS
        else field.risk.value
    )


def list_risk_names(change: Change) -> list[str]:
    """Return the names of the risks of a change, the highest risk first. Omit the risk "safe"."""
    return [risk.value for risk in change.risks if risk is not Risk.SAFE]


def _get_resource_cause(change: Change) -> str:
    is_deletion_ = change.action in (Action.DELETE, Action.REPLACE)
    return find_deletion_cause(change.id.kind) if is_deletion_ else ""


def find_irreversible_reasons(plan: Plan) -> Mapping[str, Sequence[str]]:
    """For each resource, return up to three reasons why its operations cannot be undone.

    Reasons that are already shown as the cause of a field's risk are omitted.
    """
    reasons_by_resource: dict[str, list[str]] = defaultdict(list)
    causes_by_resource = {str(c.id): {field.cause for field in c.fields} for c in plan.changes}
    for op in plan.operations:
        reasons = reasons_by_resource[str(op.resource)]
        explained = {*reasons, *causes_by_resource.get(str(op.resource), ())}
        if op.irreversible and len(reasons) < _MAX_REASONS and op.irreversible not in explained:
            reasons.append(op.irreversible)
    return reasons_by_resource
