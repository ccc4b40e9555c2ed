"""What a reviewer must not miss, in one order for all who tell of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kdeclare.model.changes import Action, Change, Risk
from kdeclare.model.diagnostics import Diagnostic, in_order
from kdeclare.model.plan import Plan, Verdict
from kdeclare.report.verdicts_text import spoken

_RISKS = tuple(reversed(Risk))
_FEW = 3
_GRAVE = (Risk.DESTRUCTIVE, Risk.IRREVERSIBLE)


def risks_of(plan: Plan) -> list[Diagnostic | Verdict | Change]:
    """What keeps changes from being made, then what cannot be undone or loses records.

    A change is there because it is blocked and nothing else says why, or for its risk.
    """
    blocking = [d for d in in_order(plan.diagnostics) if d.blocks]
    denials = [v for v in spoken(plan.verdicts) if v.denies]
    said = {d.resource for d in blocking} | {v.resource for v in denials}
    blocked = [c for c in plan.changes if c.blocked and str(c.id) not in said]
    grave = (c for c in plan.changes if not c.blocked and c.action is not Action.NO_OP and c.risk in _GRAVE)
    errors = [d for d in blocking if d.is_error]
    refusals = [d for d in blocking if not d.is_error]
    return [*errors, *denials, *refusals, *blocked, *by_risk(grave)]


def by_risk(changes: Iterable[Change]) -> list[Change]:
    """The blocked ones first, then from irreversible to safe; otherwise in the order given."""
    return sorted(changes, key=lambda c: (not c.blocked, _RISKS.index(c.risk)))


def why_irreversible(plan: Plan) -> Mapping[str, Sequence[str]]:
    """Why operations cannot be undone, by resource; a few reasons each."""
    found: dict[str, list[str]] = defaultdict(list)
    for op in plan.operations:
        known = found[str(op.resource)]
        if op.irreversible and len(known) < _FEW and op.irreversible not in known:
            known.append(op.irreversible)
    return found
