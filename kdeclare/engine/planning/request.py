"""What is asked of planning: the declared and the owned, which part of it, and how much it may delete."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import VISIBILITY_TIMEOUT_S
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import PlanOptions
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.policy_gate import NO_POLICIES, PolicyGate
from kdeclare.core.plans.state import State
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Reason
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.name_scope import NameScope
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.engine.planning import operation_graph
from kdeclare.engine.planning.prune_denied import block_changes

MAX_DELETES = "max-deletes"

_MIN_DELETES, _PERCENT, _MAX_DELETES = 3, 10, 50
_LIMIT_FORM = re.compile(r"([0-9]{1,9})(%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeletionLimit:
    """A number of resources, or a percentage of those of the same kind that the project owns."""

    number: int
    is_percentage: bool = False

    @classmethod
    def parse(cls, text: str) -> "DeletionLimit":
        """The limit in ``25`` or ``10%``. Raises ValueError for anything else."""
        match = _LIMIT_FORM.fullmatch(text)
        if match is None or (match[2] and int(match[1]) > 100):
            raise ValueError(f"'{text}' is neither a number nor a percentage up to 100%.")
        return cls(int(match[1]), bool(match[2]))

    def count(self, owned: int) -> int:
        """How many may be deleted where ``owned`` resources of the kind are owned."""
        return owned * self.number // 100 if self.is_percentage else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.is_percentage else str(self.number)


def compute_default_count(owned: int) -> int:
    """How many may be deleted where no limit is given: 10 %, but at least 3 and at most 50."""
    return min(_MAX_DELETES, max(_MIN_DELETES, owned * _PERCENT // 100))


def check_deletion_limit(
    operations: Iterable[Operation], owned: Collection[str], limit: DeletionLimit | None
) -> list[Diagnostic]:
    """A denial for each kind of which more would be deleted than ``limit`` allows (None: the default).

    operations: without those that were asked for by name. owned: ids of what the state owns.
    The denial's ``subject`` is the kind.
    """
    deleted_counts = Counter(op.resource.kind for op in operations if get_operation_type(op).deletes)
    owned_counts = Counter(ResourceId.parse(text).kind for text in owned)
    diagnostics = []
    for kind, count in sorted(deleted_counts.items()):
        allowed_count = (
            limit.count(owned_counts[kind]) if limit else compute_default_count(owned_counts[kind])
        )
        if count > allowed_count:
            diagnostics.append(_report_exceeded_limit(kind, count, allowed_count, owned_counts[kind], limit))
    return diagnostics


def limit_deletions(plan: Plan, owned: Mapping[str, object]) -> Plan:
    """A finished plan without the deletions of kinds of which it deletes too many, by the state as it is now.

    Rollbacks are exempt, because they delete only what their run created; so is what was asked for by name.
    """
    if plan.undoes is not None:
        return plan
    requested_ids = {change.id for change in plan.changes if change.reason is Reason.ASKED}
    counted_operations = [op for op in plan.operations if op.resource not in requested_ids]
    limit = DeletionLimit.parse(plan.max_deletes) if plan.max_deletes is not None else None
    problems = check_deletion_limit(counted_operations, owned, limit)
    if not problems:
        return plan
    refused_deletions = filter_deletions(counted_operations, {d.subject for d in problems})
    remaining = operation_graph.exclude_operations(plan.operations, [op.id for op in refused_deletions])
    acting_resources = {op.resource for op in remaining}
    idle_resources = {op.resource for op in plan.operations if op.resource not in acting_resources}
    limited = block_changes(plan, remaining, frozenset(map(str, idle_resources)), MAX_DELETES)
    return replace(limited, diagnostics=(*plan.diagnostics, *problems))


def filter_deletions(operations: Sequence[Operation], kinds: Collection[str | None]) -> list[Operation]:
    """The operations that delete resources of these kinds."""
    return [op for op in operations if get_operation_type(op).deletes and op.resource.kind in kinds]


def _report_exceeded_limit(
    kind: str, count: int, allowed_count: int, owned: int, limit: DeletionLimit | None
) -> Diagnostic:
    limit_text = f"--max-deletes {limit}" if limit else "the default of --max-deletes"
    return denied(
        MAX_DELETES,
        "Too many deletions",
        f"The plan would delete {count:,} of {owned:,} owned resources of kind {kind}; {limit_text} allows "
        f"{allowed_count:,}. None of them is deleted.",
        hint=f"Check that all manifests are there. If every deletion is meant, pass --max-deletes {count}.",
        subject=kind,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanScope:
    """Which part of the project a plan is about, and what it may do.

    complete: whether all of the project's manifests were loaded; what is not declared is orphaned only then.
    targets, selector: None and empty mean everything.
    adopt: whether what exists and is not owned is adopted although it differs.
    overrides: policies whose denials are not heeded, each with the reason.
    deletes: orphans to delete, named one by one; they need no ``allow_deletes``.
    max_deletes: how many resources of a kind may be deleted; None is the default.
    allow_empty: whether a project that owns something may declare nothing.
    by_hand: what is desired is asked for by a command: it is compared as if nothing were owned, and nothing
        comes to be owned or is let go of. removals: what such a command deletes, owned or not. protected:
        those of them that manifests say must not be destroyed.
    visibility_timeout_s: how long to wait for systems to show owned objects that exist.
    options: what was chosen about single systems; each part belongs to a provider.
    """

    complete: bool = True
    targets: frozenset[ResourceId] = frozenset()
    selector: Mapping[str, str] = field(default_factory=dict)
    allow_deletes: bool = False
    forget: frozenset[ResourceId] = frozenset()
    preflight: bool = True
    adopt: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)
    by_hand: bool = False
    removals: frozenset[ResourceId] = frozenset()
    deletes: frozenset[ResourceId] = frozenset()
    max_deletes: DeletionLimit | None = None
    allow_empty: bool = False
    protected: frozenset[ResourceId] = frozenset()
    visibility_timeout_s: float = VISIBILITY_TIMEOUT_S
    options: PlanOptions = field(default_factory=PlanOptions)

    @property
    def whole(self) -> bool:
        """Whether the plan is about the whole project: orphans exist only then."""
        return self.complete and not self.targets and not self.selector

    def covers(self, desired: DesiredResource) -> bool:
        """Whether a declared resource is in the plan."""
        chosen = not self.targets or desired.id in self.targets
        return chosen and (not self.selector or self.selector.items() <= desired.labels.items())


WHOLE_PROJECT = PlanScope()
"""All of the project, with nothing deleted and nothing forced."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Desired and owned; live comes from the cluster while planning.

    state: None before the first apply.
    diagnostics: what loading the manifests said.
    names: which ones the project may declare or change.
    judge: the policies that every change has to pass.
    """

    project: str
    env: str
    cluster_name: str
    desired: tuple[DesiredResource, ...]
    state: State | None
    scope: PlanScope = PlanScope()
    diagnostics: tuple[Diagnostic, ...] = ()
    judge: PolicyGate = NO_POLICIES
    names: NameScope = field(default_factory=NameScope)

    @property
    def owned(self) -> Mapping[str, OwnedRecord]:
        """The records of what is owned, by resource id."""
        return self.state.resources if self.state else {}
