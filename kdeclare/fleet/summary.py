"""What an audit comes to: the values that reports show and that later audits are compared with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kdeclare.fleet.finding import FindingKind

Counts = Mapping[FindingKind, int]
"""Findings by kind; what there is none of is left out."""


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster of an audit.

    version: Kafka's, as far as the cluster tells. topics: live, internal ones left out.
    declared: resources. error: why nothing, or not all, is known of it. notice: what else could not be told.
    """

    name: str
    labels: Mapping[str, str]
    cluster_id: str | None
    version: str | None
    taken_at: datetime | None
    topics: int
    declared: int
    found: Counts
    error: str | None = None
    notice: str | None = None

    @property
    def in_part(self) -> bool:
        """Whether some of it was not read, and the rest was, and compared."""
        return self.error is not None and self.topics > 0 and self.declared > 0


@dataclass(frozen=True, slots=True)
class Since:
    """How an audit differs from an earlier one."""

    audit_id: str
    taken_at: datetime
    new: int
    known: int
    mended: int


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One earlier audit of the fleet in one line; what it did not look at counts as it was last seen."""

    audit_id: str
    taken_at: datetime
    clusters: int
    found: Counts


@dataclass(frozen=True, slots=True)
class HeatCell:
    """How often a field of one name is found in one cluster; ``path`` is None for whole resources."""

    cluster: str
    path: str | None
    count: int


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """An audit without its rows.

    teams: findings by the label ``team`` of resources; the empty name is for those without one.
    heat: cells of the most frequent paths only. trend: earlier audits, oldest first.
    unseen: what earlier audits found and this one did not look at, or could not; not among ``found``.
    seconds: from start to end.
    """

    audit_id: str
    fleet: str
    taken_at: datetime
    seconds: float
    clusters: tuple[ClusterSummary, ...]
    found: Counts
    teams: Mapping[str, Counts] = field(default_factory=dict)
    heat: tuple[HeatCell, ...] = ()
    since: Since | None = None
    unseen: Counts = field(default_factory=dict)
    trend: tuple[TrendPoint, ...] = ()

    @property
    def remembered(self) -> Counts:
        """What is there as far as is known: what was found, and what was not looked at again."""
        both = ((kind, self.found.get(kind, 0) + self.unseen.get(kind, 0)) for kind in FindingKind)
        return {kind: count for kind, count in both if count}

    @property
    def incomplete(self) -> tuple[ClusterSummary, ...]:
        """The clusters of which not all is known."""
        return tuple(cluster for cluster in self.clusters if cluster.error is not None)


@dataclass(frozen=True, slots=True)
class AuditRun:
    """Which audit it is, of which fleet, and when it began."""

    audit_id: str
    fleet: str
    began: datetime


@dataclass(frozen=True, slots=True)
class Earlier:
    """The audits before one: the latest, and that with which it is compared."""

    newest: AuditSummary
    since: AuditSummary


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One finding with all that a report shows of it; ``before`` and ``after`` are JSON texts."""

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


@dataclass(frozen=True, slots=True)
class Audit:
    """What reports are made of: the summary, the worst findings, and what is found no more.

    left_out: how many more findings there are than ``rows``. mended: the first of them, likewise.
    """

    summary: AuditSummary
    rows: tuple[AuditRow, ...]
    left_out: int = 0
    mended: tuple[AuditRow, ...] = ()
