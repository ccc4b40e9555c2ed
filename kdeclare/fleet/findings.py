"""Findings: what an audit reports about one resource, one live object or one cluster."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass


class FindingKind(StrEnum):
    """The kind of a finding. The values are ordered, the worst kind first."""

    UNREACHABLE = "unreachable"  # the resource could not be read, so its state is unknown
    MISSING = "missing"  # the resource is owned, but no longer exists
    CHANGED = "changed"  # the live state differs from the last applied state and from the declared state
    CONTESTED = "contested"  # several projects declare or own the resource in the same cluster
    POLICY = "policy"  # the live state violates a policy
    PENDING = "pending"  # the resource is declared, but not applied yet
    ORPHANED = "orphaned"  # the resource is owned, but no longer declared
    UNMANAGED = "unmanaged"  # the live object is neither declared nor owned
    UNUSED = "unused"  # no client writes or reads the live object

    @property
    def rank(self) -> int:
        """The position of the kind among all kinds: 0 for the worst."""
        return _KIND_RANKS[self]


class FindingSeverity(StrEnum):
    """The urgency of a finding. The values are ordered, the most urgent first."""

    HIGH = "high"  # records or whole objects are lost or can be lost, or nothing is known about a cluster
    MEDIUM = "medium"  # brokers, workers or clients behave differently, or a policy denies the live state
    LOW = "low"

    @property
    def rank(self) -> int:
        """The position of the severity among all severities: 0 for the most urgent."""
        return _SEVERITY_RANKS[self]


_KIND_RANKS = {kind: rank for rank, kind in enumerate(FindingKind)}
_SEVERITY_RANKS = {severity: rank for rank, severity in enumerate(FindingSeverity)}


ACTIONABLE_KINDS = frozenset({FindingKind.CHANGED, FindingKind.PENDING, FindingKind.MISSING})
"""The kinds of findings that an apply would fix."""


UNDECLARED_KINDS = frozenset({FindingKind.UNMANAGED, FindingKind.POLICY})
"""The kinds of findings that can be about objects that no project declares or owns.

If such an object cannot be read, the audit does not report it. A declared resource that cannot be read is
reported.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about one resource.

    path: the path of the field (``configs.retention.ms``); None for the resource as a whole.
    op: the operation or action that would fix the finding: SET, DELETE, APPEND, SUBTRACT, change, create,
        delete or forget; None if an apply would not fix it.
    before, after: the live value and the declared value as JSON; None if not set.
    source: the position of the manifest: file:line:column; None if the resource is not declared.
    """

    finding: FindingKind
    path: str | None
    op: str | None
    before: str | None
    after: str | None
    message: str
    severity: FindingSeverity = FindingSeverity.LOW
    source: str | None = None

    @property
    def is_unmanaged_key(self) -> bool:
        """Whether the finding reports an undeclared key that is set on a declared resource."""
        return self.finding is FindingKind.UNMANAGED and self.path is not None

    def with_source(self, source: str) -> "Finding":
        """Return the finding with the position of its manifest."""
        # `dataclasses.replace` takes more than twice as long, and a fleet has very many findings.
        return Finding(
            self.finding, self.path, self.op, self.before, self.after, self.message, self.severity, source
        )


def compute_finding_id(cluster: str, kind: str, name: str, finding: str, path: str | None) -> str:
    """Compute the id of a finding: 12 hexadecimal digits.

    `fleet.spark.diff` computes the same id in SQL.
    """
    identity = "\0".join((cluster, kind, name, finding, path or ""))
    return hashlib.sha256(identity.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One finding with all data that reports show.

    before, after: the live value and the declared value as JSON.
    source: the position of the manifest: file:line:column; None if the resource is not declared.
    first_seen: the time of the first audit with this finding.
    status: ``known`` if the baseline (the earlier audit that determines which findings are new) contains the
        finding; otherwise ``new``.
    """

    taken_at: datetime
    cluster: str
    kind: str
    name: str
    finding: FindingKind
    path: str | None
    op: str | None
    before: str | None
    after: str | None
    message: str
    labels: Mapping[str, str]
    first_seen: datetime
    status: str
    severity: FindingSeverity = FindingSeverity.LOW
    source: str | None = None

    @property
    def id(self) -> str:
        """An id that stays the same in all audits while the finding is open."""
        return compute_finding_id(self.cluster, self.kind, self.name, self.finding, self.path)


@dataclass(frozen=True, slots=True)
class FindingCount:
    """The number of findings of one kind and one severity, in one cluster, about resources of one team.

    team: the value of the label ``team``; empty for resources without this label.
    oldest: the time of the first audit that contains the oldest of these findings.
    """

    cluster: str
    finding: FindingKind
    severity: FindingSeverity
    team: str
    count: int
    oldest: datetime
