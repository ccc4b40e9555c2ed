"""What an audit comes to: the values that reports show and that later audits are compared with.

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
    """The kinds of drift, worst first as people read them."""

    UNREACHABLE = "unreachable"  # it could not be read, so nothing is known
    MISSING = "missing"  # owned, and gone
    CHANGED = "changed"  # live differs from what was last applied, and from what is declared
    POLICY = "policy"  # live is against a policy
    PENDING = "pending"  # declared and not applied yet
    ORPHANED = "orphaned"  # owned, and declared no longer
    UNMANAGED = "unmanaged"  # live, and neither declared nor owned


ACTIONABLE_KINDS = frozenset({FindingKind.CHANGED, FindingKind.PENDING, FindingKind.MISSING})
"""What an apply would do something about: with these, an audit has changes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of one resource.

    path: of the field (``configs.retention.ms``); None for the resource as a whole.
    op: what would mend it: SET, DELETE, APPEND, SUBTRACT, change, create, delete, forget; None if nothing.
    before, after: JSON texts of the field as it is and as it would be; None is "not set".
    """

    finding: FindingKind
    path: str | None
    op: str | None
    before: str | None
    after: str | None
    message: str

    @property
    def is_unmanaged_key(self) -> bool:
        """Whether it is a key of a resource that is declared, which nobody declared."""
        return self.finding is FindingKind.UNMANAGED and self.path is not None


_FILE_FORMAT = FileFormat(
    code="bad-audit",
    name="Audit",
    broken="Not the summary of an audit",
    command="kdeclare fleet audit",
    invalid_hint="Take it away, or audit into another folder.",
    version_hint="Audit into another folder, or use the kdeclare that wrote it.",
)

KindCounts = Mapping[FindingKind, int]
"""Findings by kind; what there is none of is left out."""


def _order_counts(counts: KindCounts) -> dict[FindingKind, int]:
    return {kind: counts[kind] for kind in FindingKind if counts.get(kind)}


def _sort_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(labels.items()))


_CountsField = Annotated[
    KindCounts,
    PlainSerializer(_order_counts),
    Field(description="Findings by kind; what there is none of is left out."),
]


def _sort_teams(teams: Mapping[str, KindCounts]) -> dict[str, _CountsField]:
    return {team: teams[team] for team in sorted(teams)}


Seconds = Annotated[float, Field(description="From start to end.")]
Labels = Annotated[Mapping[str, str], Field(description="Those that the fleet file gives the cluster.")]


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster of an audit.

    read: how many live objects were read. others: how many objects of other sorts than topics it has, without
    the internal ones. Neither is in summary.json.
    """

    schema_name = "AuditedClusterDocument"

    name: str
    labels: Annotated[Labels, PlainSerializer(_sort_labels)]
    cluster_id: str | None
    version: Annotated[str | None, Field(description="Kafka's, as far as the cluster tells.")]
    taken_at: Time | None
    topics: Annotated[int, Field(description="Live, without the internal ones.")]
    declared: Annotated[int, Field(description="Resources.")]
    found: _CountsField
    error: Annotated[str | None, Field(description="Why nothing, or not all, is known of the cluster.")] = (
        None
    )
    notice: Annotated[str | None, Field(description="What else could not be told.")] = None
    read: Annotated[int, Field(exclude=True)] = 0
    others: Annotated[tuple[ObjectCount, ...], Field(exclude=True)] = ()

    @property
    def is_partial(self) -> bool:
        """Whether some of it was not read, and the rest was, and compared."""
        return self.error is not None and (self.read > 0 or self.topics > 0) and self.declared > 0


@dataclass(frozen=True, slots=True)
class Since:
    """How an audit differs from an earlier one."""

    audit_id: str
    taken_at: Time
    new: int
    known: int
    mended: int


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One earlier audit.

    What it did not look at counts as it was last seen.
    """

    schema_name = "TrendDocument"

    audit_id: str
    taken_at: Time
    clusters: int
    found: _CountsField


@dataclass(frozen=True, slots=True)
class HeatCell:
    """How often a field of one name is found in one cluster."""

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
        Field(description="Findings by the label team of resources; the empty name is for those without."),
    ] = field(default_factory=dict)
    heat: Annotated[tuple[HeatCell, ...], Field(description="Of the most frequent paths.")] = ()
    since: Annotated[Since | None, Field(description="null where there is no earlier audit.")] = None
    unseen: Annotated[
        KindCounts,
        PlainSerializer(_order_counts),
        Field(description="Findings of earlier audits that this one did not, or could not, look at again."),
    ] = field(default_factory=dict)
    trend: Annotated[tuple[TrendPoint, ...], Field(description="Earlier audits, the oldest first.")] = ()

    @property
    def remembered(self) -> KindCounts:
        """What is there as far as is known: what was found, and what was not looked at again."""
        total_counts = ((kind, self.found.get(kind, 0) + self.unseen.get(kind, 0)) for kind in FindingKind)
        return {kind: count for kind, count in total_counts if count}

    @property
    def incomplete(self) -> tuple[ClusterSummary, ...]:
        """The clusters of which not all is known."""
        return tuple(cluster for cluster in self.clusters if cluster.error is not None)


def dump_summary(summary: AuditSummary) -> str:
    """Return the text of summary.json, ending in a new line."""
    return json.dumps(dump_document(summary), indent=1, ensure_ascii=False) + "\n"


def parse_summary(text: str, source: str = "summary.json") -> AuditSummary:
    """Return the audit that a text is of; ``source`` names the file in errors.

    Raises KdeclareError (bad-audit) for another format version, and for what is no summary of an audit.
    """
    return _FILE_FORMAT.bind(AuditSummary, text, source)


@dataclass(frozen=True, slots=True)
class AuditRun:
    """Which audit it is, of which fleet, and when it began."""

    audit_id: str
    fleet: str
    began: datetime


@dataclass(frozen=True, slots=True)
class EarlierAudits:
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
