"""The plan as plain data, for display, JSON output and apply."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.endpoints import Endpoints
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.unmanaged import UnmanagedListing
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord

FORMAT_VERSION = "2.0"


@dataclass(frozen=True, slots=True)
class ClusterRef:
    """The cluster that the plan is for.

    name: the name of the environment, for display.
    """

    schema_name = "ClusterDocument"

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class PlanBase:
    """The state that a plan is based on. The serial is for information only; apply does not check it."""

    lineage: str | None
    serial: int


class VerdictOutcome(StrEnum):
    """The decision of a policy about a change."""

    ALLOW = "allow"
    WARN = "warn"
    DENY = "deny"


SYSTEM_POLICY = "broker"
"""The policy name in the verdicts of a system's own policies, such as a policy that brokers enforce."""

STALE = "stale"
"""The diagnostic code for an object that another client changed after kdeclare read it."""

UNEXPLAINED_DENIAL = "A policy of the brokers denied the request without giving a reason."
"""The message for a request that a policy of the brokers denied without giving a reason."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of one policy about one change.

    resource: the id of the changed resource. topic: the evaluated topic, if it is not the changed resource.
    override: the reason that a user gave for overriding a denial; the outcome is then ``warn``.
    """

    policy: str
    resource: str
    outcome: VerdictOutcome
    message: str = ""
    topic: str | None = None
    override: str | None = None

    @property
    def is_denial(self) -> bool:
        """Whether the verdict denies the change."""
        return self.outcome is VerdictOutcome.DENY


def build_system_denial(resource: str, message: str) -> Verdict:
    """Return the verdict for a denial by a policy of the system.

    An empty ``message`` is replaced by a default.
    """
    return Verdict(SYSTEM_POLICY, resource, VerdictOutcome.DENY, message or UNEXPLAINED_DENIAL)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of resources, except that ``reassign`` counts partitions and ``unmanaged_configs`` counts keys.

    A replaced resource counts in both ``create`` and ``delete``.
    """

    create: int = 0
    update: int = 0
    delete: int = 0
    forget: int = 0
    unchanged: int = 0
    orphaned: int = 0
    blocked: int = 0
    unmanaged: int = 0
    reassign: int = 0
    unmanaged_configs: int = 0


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership record of one resource before and after the plan.

    None means that kdeclare does not own the resource.
    """

    id: ResourceId
    before: OwnedRecord | None
    after: OwnedRecord | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: its changes, operations, verdicts and diagnostics.

    ownership: the changes to ownership records in the state, including changes that need no operation.
    unmanaged_configs: keys that are set but neither declared nor owned, by resource.
    undoes: the id of the run that this plan undoes, if the plan is a rollback.
    labels: labels that the state does not contain, but that apply needs to evaluate policies again, by the
        name of the topic or the id of any other resource.
    racks: the racks of brokers, for display; empty if no operation assigns replicas.
    max_deletes: the maximum number of deletions, as set by the user (``25`` or ``10%``); None means the
        default.
    endpoints: the ids of the named endpoints that the plan is for; see `Endpoints`.
    observations: the impact of the changes on records and clients, for display. The plan's id does not depend
        on them, because they change all the time.
    blocked_operations: the operations of blocked changes, for display; see `PlansBlockedChanges`. These
        operations have neither an inverse nor an order, and are never executed.
    unmanaged: the objects that the project neither declares nor owns, for display; None if they were not
        requested. The plan's id does not depend on them, because they do not affect the plan.
    """

    project: str
    env: str
    cluster: ClusterRef
    base: PlanBase
    summary: Summary
    changes: tuple[Change, ...] = ()
    operations: tuple[Operation, ...] = ()
    ownership: tuple[Ownership, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    unmanaged_configs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    undoes: str | None = None
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    racks: Mapping[int, str] = field(default_factory=dict)
    max_deletes: str | None = None
    endpoints: Endpoints = field(default_factory=dict)
    blocked_operations: tuple[Operation, ...] = ()
    observations: tuple[Observation, ...] = ()
    unmanaged: UnmanagedListing | None = None

    @property
    def has_changes(self) -> bool:
        """Whether the plan changes anything. This determines the headline and the exit code."""
        return any(c.action is not Action.NO_OP for c in self.changes)

    @property
    def has_denials(self) -> bool:
        """Whether a policy or a guard denied a change in the plan."""
        return any(v.is_denial for v in self.verdicts) or any(
            d.severity is Severity.DENIED for d in self.diagnostics
        )

    @property
    def is_partly_denied(self) -> bool:
        """Whether apply would make only some of the changes, because the other changes are denied."""
        return self.has_denials and bool(self.operations or self.ownership)

    @property
    def has_errors(self) -> bool:
        """Whether the plan has an error that prevents an apply."""
        return any(d.blocks_plan for d in self.diagnostics)

    @property
    def is_stale(self) -> bool:
        """Whether the plan has errors, and all of them report changes by other clients during planning."""
        return self.has_errors and all(d.code == STALE for d in self.diagnostics if d.blocks_plan)
