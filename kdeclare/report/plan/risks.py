"""What a reviewer must not miss, in one order for all reports."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kdeclare.core.diagnostics import Diagnostic, in_order
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.resources.capabilities import find_deletion_cause
from kdeclare.core.resources.changes import Action, Change, FieldChange, Risk
from kdeclare.report.elements.diagnostics_text import spoken
from kdeclare.report.elements.values import clean, key_of, listed

GRAVE = (Risk.DESTRUCTIVE, Risk.IRREVERSIBLE)
_RISKS = tuple(reversed(Risk))
_FEW = 3
_NAMED = 4


@dataclass(frozen=True, slots=True)
class RiskCause:
    """One risk of a change. cause: why, in a sentence, or empty. paths: the fields that it is about."""

    risk: Risk
    cause: str
    paths: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The cause and its fields in one line; both can be missing."""
        names = [clean(key_of(path)) for path in self.paths[:_NAMED]]
        more = len(self.paths) - _NAMED
        fields = listed([*names, f"{more:,} more" if more > 0 else ""])
        return f"{clean(self.cause)} ({fields})" if fields else clean(self.cause)


def risks_of(plan: Plan) -> list[Diagnostic | Verdict | Change]:
    """Deletions; then what keeps changes from being made; then what cannot be undone or loses records.

    A change is there because it is blocked and nothing else says why, or for its risk.
    """
    blocking = [d for d in in_order(plan.diagnostics) if d.blocks]
    denials = [v for v in spoken(plan.verdicts) if v.denies]
    said = {d.resource for d in blocking} | {v.resource for v in denials}
    blocked = [c for c in plan.changes if c.blocked and str(c.id) not in said]
    deletions = [c for c in plan.changes if is_deletion(c)]
    grave = (c for c in plan.changes if not c.blocked and c.action is not Action.NO_OP and c.risk in GRAVE)
    others = by_risk(c for c in grave if not is_deletion(c))
    errors = [d for d in blocking if d.is_error]
    refusals = [d for d in blocking if not d.is_error]
    return [*deletions, *errors, *denials, *refusals, *blocked, *others]


def is_deletion(change: Change) -> bool:
    """Whether the plan deletes the resource."""
    return change.action is Action.DELETE and not change.blocked


def deletions_first(changes: Iterable[Change]) -> list[Change]:
    """Deletions before everything else; otherwise in the order given."""
    return sorted(changes, key=lambda c: not is_deletion(c))


def by_risk(changes: Iterable[Change]) -> list[Change]:
    """Deletions first, then the blocked ones, then from irreversible to safe; otherwise as given."""
    return sorted(changes, key=lambda c: (not is_deletion(c), not c.blocked, _RISKS.index(c.risk)))


def causes_of(change: Change) -> list[RiskCause]:
    """All risks of a change but "safe", the highest first, with the fields that have them."""
    fields: dict[tuple[Risk, str], list[str]] = defaultdict(list)
    if change.risk not in {field.risk for field in change.fields}:
        fields[change.risk, _cause_of_whole(change)] = []
    for field in change.fields:
        fields[field.risk, field.cause].append(field.path)
    found = [RiskCause(risk, cause, tuple(paths)) for (risk, cause), paths in fields.items()]
    return sorted((c for c in found if c.risk is not Risk.SAFE), key=lambda c: _RISKS.index(c.risk))


def cause_of(field: FieldChange) -> str:
    """A field's risk, of a grave one with its cause; empty for a safe one."""
    if field.risk is Risk.SAFE:
        return ""
    return f"{field.risk.value}: {field.cause}" if field.cause and field.risk in GRAVE else field.risk.value


def names_of_risks(change: Change) -> list[str]:
    """All risks of a change from the highest down; of a safe one, none."""
    return [risk.value for risk in change.risks if risk is not Risk.SAFE]


def _cause_of_whole(change: Change) -> str:
    return find_deletion_cause(change.id.kind) if change.action is Action.DELETE else ""


def why_irreversible(plan: Plan) -> Mapping[str, Sequence[str]]:
    """Why operations cannot be undone, by resource: a few reasons that no field has as its cause."""
    found: dict[str, list[str]] = defaultdict(list)
    causes = {str(c.id): {field.cause for field in c.fields} for c in plan.changes}
    for op in plan.operations:
        known = found[str(op.resource)]
        told = {*known, *causes.get(str(op.resource), ())}
        if op.irreversible and len(known) < _FEW and op.irreversible not in told:
            known.append(op.irreversible)
    return found
