"""How many deletions one plan may make: the guard against a folder that was emptied by mistake."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdeclare.core.changes import Reason
from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.ids import ResourceId
from kdeclare.core.operations import Operation
from kdeclare.core.plan import Plan
from kdeclare.core.registry import type_of
from kdeclare.engine.planning import order
from kdeclare.engine.planning.trimming import block_changes

MAX_DELETES = "max-deletes"

_AT_LEAST, _PERCENT, _AT_MOST = 3, 10, 50
_FORM = re.compile(r"([0-9]{1,9})(%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeletionLimit:
    """A number of resources, or a percentage of those of the same kind that the project owns."""

    number: int
    is_percentage: bool = False

    @classmethod
    def parse(cls, text: str) -> "DeletionLimit":
        """The limit in ``25`` or ``10%``. Raises ValueError for anything else."""
        found = _FORM.fullmatch(text)
        if found is None or (found[2] and int(found[1]) > 100):
            raise ValueError(f"'{text}' is neither a number nor a percentage up to 100%.")
        return cls(int(found[1]), bool(found[2]))

    def count(self, owned: int) -> int:
        """How many may be deleted where ``owned`` resources of the kind are owned."""
        return owned * self.number // 100 if self.is_percentage else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.is_percentage else str(self.number)


def default_count(owned: int) -> int:
    """How many may be deleted where no limit is given: 10 %, but at least 3 and at most 50."""
    return min(_AT_MOST, max(_AT_LEAST, owned * _PERCENT // 100))


def exceed_limit(
    operations: Iterable[Operation], owned: Collection[str], limit: DeletionLimit | None
) -> list[Diagnostic]:
    """A denial for each kind of which more would be deleted than ``limit`` allows (None: the default).

    operations: without those that were asked for by name. owned: ids of what the state owns.
    The denial's ``subject`` is the kind.
    """
    deleted = Counter(op.resource.kind for op in operations if type_of(op).deletes)
    known = Counter(ResourceId.parse(text).kind for text in owned)
    found = []
    for kind, count in sorted(deleted.items()):
        allowed = limit.count(known[kind]) if limit else default_count(known[kind])
        if count > allowed:
            found.append(_exceeded(kind, count, allowed, known[kind], limit))
    return found


def limit_deletions(plan: Plan, owned: Mapping[str, object]) -> Plan:
    """A finished plan without the deletions of kinds of which it deletes too many, by the state as it is now.

    Rollbacks are exempt, because they delete only what their run created; so is what was asked for by name.
    """
    if plan.undoes is not None:
        return plan
    asked = {change.id for change in plan.changes if change.reason is Reason.ASKED}
    counted = [op for op in plan.operations if op.resource not in asked]
    limit = DeletionLimit.parse(plan.max_deletes) if plan.max_deletes is not None else None
    problems = exceed_limit(counted, owned, limit)
    if not problems:
        return plan
    refused = deletions_of(counted, {d.subject for d in problems})
    left = order.without(plan.operations, [op.id for op in refused])
    acting = {op.resource for op in left}
    idle = {op.resource for op in plan.operations if op.resource not in acting}
    limited = block_changes(plan, left, frozenset(map(str, idle)), MAX_DELETES)
    return replace(limited, diagnostics=(*plan.diagnostics, *problems))


def deletions_of(operations: Sequence[Operation], kinds: Collection[str | None]) -> list[Operation]:
    """The operations that delete resources of these kinds."""
    return [op for op in operations if type_of(op).deletes and op.resource.kind in kinds]


def _exceeded(kind: str, count: int, allowed: int, owned: int, limit: DeletionLimit | None) -> Diagnostic:
    given = f"--max-deletes {limit}" if limit else "the default of --max-deletes"
    return denied(
        MAX_DELETES,
        "Too many deletions",
        f"The plan would delete {count:,} of {owned:,} owned resources of kind {kind}; {given} allows "
        f"{allowed:,}. None of them is deleted.",
        hint=f"Check that all manifests are there. If every deletion is meant, pass --max-deletes {count}.",
        subject=kind,
    )
