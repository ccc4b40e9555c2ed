"""The plan: plain data that explain, preview, JSON and apply all read."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord

FORMAT_VERSION = "2.0"


@dataclass(frozen=True, slots=True)
class ClusterRef:
    """The cluster that the plan is for.

    name: the environment's, for people.
    """

    schema_name = "ClusterDocument"

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class PlanBase:
    """The state that a plan was made on. The serial is information, not an expectation."""

    lineage: str | None
    serial: int


class VerdictOutcome(StrEnum):
    """What a policy wants done with a change."""

    ALLOW = "allow"
    WARN = "warn"
    DENY = "deny"


SYSTEM_POLICY = "broker"
"""The name that stands for the policies that the system itself is configured with."""

STALE = "stale"
"""The code of a diagnostic that says that others have changed something since it was read."""

UNEXPLAINED_DENIAL = "A policy of the brokers refuses it and does not say why."
"""What is said where they deny without a message."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy said about one change.

    resource: the change's id. topic: the topic that was judged, where the resource is not the topic itself.
    override: the reason that somebody gave for having it done all the same; the outcome is then ``warn``.
    """

    policy: str
    resource: str
    outcome: VerdictOutcome
    message: str = ""
    topic: str | None = None
    override: str | None = None

    @property
    def is_denial(self) -> bool:
        """Whether the change must not be made."""
        return self.outcome is VerdictOutcome.DENY


def build_system_denial(resource: str, message: str) -> Verdict:
    """The verdict of the system's own policy, which need not say why."""
    return Verdict(SYSTEM_POLICY, resource, VerdictOutcome.DENY, message or UNEXPLAINED_DENIAL)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of resources; ``reassign`` counts partitions, ``unmanaged_configs`` counts keys."""

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
    """What kdeclare is responsible for on one resource, before and after; None is "nothing"."""

    id: ResourceId
    before: OwnedRecord | None
    after: OwnedRecord | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes, the graph of operations, verdicts and diagnostics.

    ownership: the records of the state that this plan changes, also where no operation is needed.
    unmanaged_configs: keys that are set and neither declared nor owned, by resource.
    undoes: the run that this plan rolls back, if it is a rollback.
    labels: of topics, those that the state does not have: policies judge by them once more.
    racks: of brokers, for people; empty where no operation says which replicas go where.
    max_deletes: the limit of deletions that was given (``25`` or ``10%``); None is the default.
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

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to do: the one answer that headline and exit code share."""
        return any(c.action is not Action.NO_OP for c in self.changes)

    @property
    def has_errors(self) -> bool:
        """Whether something keeps the plan from being applied at all."""
        return any(d.is_error for d in self.diagnostics)

    @property
    def is_stale(self) -> bool:
        """Whether all that keeps it from being applied is what others changed while it was made."""
        return self.has_errors and all(d.code == STALE for d in self.diagnostics if d.is_error)
