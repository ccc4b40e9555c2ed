"""The input of planning: the declared and owned resources, the scope, and the limit on deletions."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
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
from kdeclare.core.resources.kind import DesiredResource, ManifestExclusion
from kdeclare.core.resources.name_scope import NameScope
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.engine.planning import operation_graph
from kdeclare.engine.planning.other_owners import ReadOtherStates
from kdeclare.engine.planning.prune_denied import block_changes

MAX_DELETES = "max-deletes"

_MIN_DELETES, _PERCENT, _MAX_DELETES = 3, 10, 50
_LIMIT_FORM = re.compile(r"([0-9]{1,9})(%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeletionLimit:
    """A limit on the deletions of one kind: a number, or a percentage of the owned resources of the kind."""

    number: int
    is_percentage: bool = False

    @classmethod
    def parse(cls, text: str) -> "DeletionLimit":
        """Parse ``25`` or ``10%``. Raises ValueError for anything else."""
        match = _LIMIT_FORM.fullmatch(text)
        if match is None or (match[2] and int(match[1]) > 100):
            raise ValueError(f"'{text}' is not a number or a percentage from 0% to 100%.")
        return cls(int(match[1]), bool(match[2]))

    def count(self, owned: int) -> int:
        """Return the maximum number of deletions of one kind.

        owned: the number of owned resources of the kind.
        """
        return owned * self.number // 100 if self.is_percentage else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.is_percentage else str(self.number)


def compute_default_count(owned: int) -> int:
    """Return the default limit on deletions of one kind: 10 % of ``owned``, at least 3 and at most 50."""
    return min(_MAX_DELETES, max(_MIN_DELETES, owned * _PERCENT // 100))


def check_deletion_limit(
    operations: Iterable[Operation],
    released: Set[ResourceId],
    owned: Collection[str],
    limit: DeletionLimit | None,
) -> list[Diagnostic]:
    """Return a denial for each kind with more deletions than ``limit`` allows. None means the default limit.

    operations: the operations, without those that a command requested by name.
    released: the resources that are no longer owned after the plan. An operation on such a resource counts as
        a deletion, even if the object itself always exists, such as the settings of a broker.
    owned: the ids of the resources in the state.

    The ``subject`` of each denial is the kind.
    """
    deleted_resources = {op.resource for op in operations if _is_deletion(op, released)}
    deleted_counts = Counter(resource.kind for resource in deleted_resources)
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
    """Return the plan without the deletions of each kind that exceeds the limit on deletions.

    The limit is computed for the current state. Rollbacks are exempt, because they delete only resources that
    the undone run created. Resources that a command requested by name are exempt, too.
    """
    if plan.undoes is not None:
        return plan
    requested_ids = {change.id for change in plan.changes if change.reason is Reason.ASKED}
    counted_operations = [op for op in plan.operations if op.resource not in requested_ids]
    limit = DeletionLimit.parse(plan.max_deletes) if plan.max_deletes is not None else None
    released = frozenset(
        entry.id for entry in plan.ownership if entry.before is not None and entry.after is None
    )
    problems = check_deletion_limit(counted_operations, released, owned, limit)
    if not problems:
        return plan
    refused_deletions = filter_deletions(counted_operations, released, {d.subject for d in problems})
    remaining = operation_graph.exclude_operations(plan.operations, [op.id for op in refused_deletions])
    acting_resources = {op.resource for op in remaining}
    idle_resources = {op.resource for op in plan.operations if op.resource not in acting_resources}
    limited = block_changes(plan, remaining, frozenset(map(str, idle_resources)), MAX_DELETES)
    return replace(limited, diagnostics=(*plan.diagnostics, *problems))


def filter_deletions(
    operations: Sequence[Operation], released: Set[ResourceId], kinds: Collection[str | None]
) -> list[Operation]:
    """Return the operations that delete resources of these kinds. released: see `check_deletion_limit`."""
    return [op for op in operations if op.resource.kind in kinds and _is_deletion(op, released)]


def _is_deletion(op: Operation, released: Set[ResourceId]) -> bool:
    return op.resource in released or get_operation_type(op).find_deleted_resource(op) is not None


def _report_exceeded_limit(
    kind: str, count: int, allowed_count: int, owned: int, limit: DeletionLimit | None
) -> Diagnostic:
    limit_text = f"--max-deletes {limit}" if limit else "the default of --max-deletes"
    return denied(
        MAX_DELETES,
        "Too many deletions",
        f"The plan would delete {count:,} of {owned:,} owned resources of kind {kind}, but {limit_text} "
        f"allows {allowed_count:,}. None of them is deleted.",
        hint="Check that no manifest is missing. If all of these deletions are intended, pass "
        f"--max-deletes {count}.",
        subject=kind,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanScope:
    """The part of the project that a plan covers, and the changes that the plan is allowed to make.

    complete: whether all manifests of the project were loaded. If not, undeclared resources do not count as
        orphans.
    targets, selector: the resources that the plan covers; everything if both are empty.
    adopt: whether to adopt existing, unowned resources even if they differ from the manifest.
    overrides: the policies whose denials are overridden, each with the reason.
    deletes: orphans to delete, each named explicitly; they do not need ``allow_deletes``.
    replacements: declared resources to delete and create again, each named explicitly.
    max_deletes: the limit on deletions per kind; None means the default limit.
    impact: whether to read the impact of destructive changes on records and clients.
    allow_empty: whether a project that owns resources is allowed to declare no resources.
    by_hand: whether an ad hoc command requested the resources. If so, resources are compared as if none were
        owned, and ownership does not change.
    removals: the resources that an ad hoc command deletes, owned or not.
    protected: the removals that manifests protect from deletion.
    visibility_timeout_s: how long to wait for owned objects to appear in the systems, in seconds.
    options: the options that individual providers define.
    """

    complete: bool = True
    targets: frozenset[ResourceId] = frozenset()
    selector: Mapping[str, str] = field(default_factory=dict)
    allow_deletes: bool = False
    forget: frozenset[ResourceId] = frozenset()
    preflight: bool = True
    impact: bool = False
    adopt: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)
    by_hand: bool = False
    removals: frozenset[ResourceId] = frozenset()
    deletes: frozenset[ResourceId] = frozenset()
    replacements: frozenset[ResourceId] = frozenset()
    max_deletes: DeletionLimit | None = None
    allow_empty: bool = False
    protected: frozenset[ResourceId] = frozenset()
    visibility_timeout_s: float = VISIBILITY_TIMEOUT_S
    options: PlanOptions = field(default_factory=PlanOptions)

    @property
    def whole(self) -> bool:
        """Whether the plan covers the whole project. Only such a plan reports orphans."""
        return self.complete and not self.targets and not self.selector

    def covers(self, desired: DesiredResource) -> bool:
        """Whether the plan covers the given declared resource."""
        chosen = not self.targets or desired.id in self.targets
        return chosen and (not self.selector or self.selector.items() <= desired.labels.items())


WHOLE_PROJECT = PlanScope()
"""The default scope: the whole project, with no deletions and no overrides."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The desired and owned resources for which a plan is made.

    state: None before the first apply.
    diagnostics: the diagnostics from loading the manifests.
    names: the names that the project is allowed to declare or change.
    absent: the resources that a manifest declares as absent. ``desired`` does not contain them.
    exclusions: why the manifests of undeclared resources are not present in the environment, by resource.
    read_other_states: reads the states of other projects at the location of the state, if the plan needs
        them.
    ``judge``: the policies that evaluate every change.
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
    absent: tuple[DesiredResource, ...] = ()
    exclusions: Mapping[ResourceId, ManifestExclusion] = field(default_factory=dict)
    read_other_states: ReadOtherStates = tuple

    @property
    def owned(self) -> Mapping[str, OwnedRecord]:
        """The ownership records by resource id."""
        return self.state.resources if self.state else {}
