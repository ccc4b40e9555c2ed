"""The results of an audit, which reports show and later audits are compared with.

`AuditSummary` is the document ``summary.json``, an audit without its rows, for scripts and later audits.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.core.documents import Time, dump_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.object_counts import ObjectCount
from kdeclare.fleet.rows import FileFormat


class FindingKind(StrEnum):
    """The kinds of findings, worst first, which is the order in reports."""

    UNREACHABLE = "unreachable"  # it could not be read, so its state is unknown
    MISSING = "missing"  # owned, but it no longer exists
    CHANGED = "changed"  # live differs from what was last applied, and from what is declared
    POLICY = "policy"  # live violates a policy
    PENDING = "pending"  # declared, but not applied yet
    ORPHANED = "orphaned"  # owned, but no longer declared
    UNMANAGED = "unmanaged"  # live, but neither declared nor owned


ACTIONABLE_KINDS = frozenset({FindingKind.CHANGED, FindingKind.PENDING, FindingKind.MISSING})
"""The kinds of findings that an apply would fix. An audit with such findings has changes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of one resource.

    path: the path of the field (``configs.retention.ms``); None for the resource as a whole.
    op: what would fix it: SET, DELETE, APPEND, SUBTRACT, change, create, delete, forget; None if nothing.
    before, after: JSON texts of the live and the declared value; None means "not set".
    """

    finding: FindingKind
    path: str | None
    op: str | None
    before: str | None
    after: str | None
    message: str

    @property
    def is_unmanaged_key(self) -> bool:
        """Whether this is an undeclared key of a declared resource."""
        return self.finding is FindingKind.UNMANAGED and self.path is not None


_FILE_FORMAT = FileFormat(
    code="bad-audit",
    name="Audit",
    broken="Not an audit summary",
    command="kdeclare fleet audit",
    invalid_hint="Remove the file, or audit into another folder.",
    version_hint="Audit into another folder, or use the kdeclare version that wrote the file.",
)

KindCounts = Mapping[FindingKind, int]
"""Findings by kind; kinds without findings are left out."""


def _order_counts(counts: KindCounts) -> dict[FindingKind, int]:
    return {kind: counts[kind] for kind in FindingKind if counts.get(kind)}


def _sort_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(labels.items()))


_CountsField = Annotated[
    KindCounts,
    PlainSerializer(_order_counts),
    Field(description="The number of findings by kind; kinds without findings are left out."),
]


def _sort_teams(teams: Mapping[str, KindCounts]) -> dict[str, _CountsField]:
    return {team: teams[team] for team in sorted(teams)}


Seconds = Annotated[float, Field(description="The duration from start to end.")]
Labels = Annotated[Mapping[str, str], Field(description="The labels of the cluster in the fleet file.")]


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster of an audit.

    read: the number of live objects that were read. others: the number of objects other than topics, without
    internal ones. Neither is in summary.json.
    """

    schema_name = "AuditedClusterDocument"

    name: str
    labels: Annotated[Labels, PlainSerializer(_sort_labels)]
    cluster_id: str | None
    version: Annotated[str | None, Field(description="The Kafka version, if the cluster reports it.")]
    taken_at: Time | None
    topics: Annotated[int, Field(description="The number of live topics, without internal ones.")]
    declared: Annotated[int, Field(description="The number of declared resources.")]
    found: _CountsField
    error: Annotated[
        str | None, Field(description="Why the cluster could not be read, or only partially.")
    ] = None
    notice: Annotated[str | None, Field(description="What else could not be determined.")] = None
    read: Annotated[int, Field(exclude=True)] = 0
    others: Annotated[tuple[ObjectCount, ...], Field(exclude=True)] = ()

    @property
    def is_partial(self) -> bool:
        """Whether a part of the cluster was not read, while the rest was read and compared."""
        return self.error is not None and (self.read > 0 or self.topics > 0) and self.declared > 0


@dataclass(frozen=True, slots=True)
class Since:
    """The comparison of an audit with an earlier one."""

    audit_id: str
    taken_at: Time
    new: int
    known: int
    mended: int


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One earlier audit.

    Findings that it did not check again count as they were last seen.
    """

    schema_name = "TrendDocument"

    audit_id: str
    taken_at: Time
    clusters: int
    found: _CountsField


@dataclass(frozen=True, slots=True)
class HeatCell:
    """The number of findings for one field in one cluster."""

    schema_name = "HeatDocument"

    cluster: str
    path: Annotated[str | None, Field(description="null for whole resources.")]
    count: int


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """An audit without its rows, also in summary.json of its folder."""

    audit_id: str
    fleet: str
    taken_at: Time
    seconds: Seconds
    clusters: tuple[ClusterSummary, ...]
    found: _CountsField
    teams: Annotated[
        Mapping[str, KindCounts],
        PlainSerializer(_sort_teams),
        Field(description="Findings by the resources' label team; the empty name is for those without it."),
    ] = field(default_factory=dict)
    heat: Annotated[tuple[HeatCell, ...], Field(description="The counts of the most frequent paths.")] = ()
    since: Annotated[Since | None, Field(description="null if there is no earlier audit.")] = None
    unseen: Annotated[
        KindCounts,
        PlainSerializer(_order_counts),
        Field(description="Findings of earlier audits that this one did not, or could not, check again."),
    ] = field(default_factory=dict)
    trend: Annotated[tuple[TrendPoint, ...], Field(description="Earlier audits, oldest first.")] = ()

    @property
    def remembered(self) -> KindCounts:
        """All findings as far as known: those of this audit, and earlier ones that were not checked again."""
        total_counts = ((kind, self.found.get(kind, 0) + self.unseen.get(kind, 0)) for kind in FindingKind)
        return {kind: count for kind, count in total_counts if count}

    @property
    def incomplete(self) -> tuple[ClusterSummary, ...]:
        """The clusters that could not be read, or only partially."""
        return tuple(cluster for cluster in self.clusters if cluster.error is not None)


def dump_summary(summary: AuditSummary) -> str:
    """Return the text of summary.json, ending in a newline."""
    return json.dumps(dump_document(summary), indent=1, ensure_ascii=False) + "\n"


def parse_summary(text: str, source: str = "summary.json") -> AuditSummary:
    """Parse the text of a summary.json; ``source`` names the file in errors.

    Raises KdeclareError (bad-audit) for another format version, and for text that is not an audit summary.
    """
    return _FILE_FORMAT.bind(AuditSummary, text, source)


@dataclass(frozen=True, slots=True)
class AuditRun:
    """The id of an audit, its fleet, and its start time."""

    audit_id: str
    fleet: str
    began: datetime


@dataclass(frozen=True, slots=True)
class EarlierAudits:
    """The earlier audits of a fleet: the latest one, and the one to compare with."""

    newest: AuditSummary
    since: AuditSummary


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One finding with everything that a report shows; ``before`` and ``after`` are JSON texts."""

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
    """The contents of reports: the summary, the worst findings, and the fixed ones.

    left_out: how many more findings there are than ``rows``. ``mended``: the fixed findings, the worst
    first, up to a limit.
    """

    summary: AuditSummary
    rows: tuple[AuditRow, ...]
    left_out: int = 0
    mended: tuple[AuditRow, ...] = ()
