"""The results of an audit, for reports and for comparisons with later audits.

The file ``summary.json`` contains an `AuditSummary`: the counts of an audit without its findings.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.documents import Time, dump_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.findings import AuditRow, FindingCount, FindingKind, FindingSeverity
from kdeclare.fleet.object_counts import ObjectCount
from kdeclare.fleet.tables.rows import FileFormat
from kdeclare.manifests.fleet.manifest_links import ManifestLinks

_FILE_FORMAT = FileFormat(
    code="bad-audit",
    name="Audit",
    broken="Not an audit summary",
    command="kdeclare fleet audit",
    invalid_hint="Delete the file, or write the audit to a different folder.",
    version_hint="Write the audit to a different folder, or use the kdeclare version that wrote the file.",
)

KindCounts = Mapping[FindingKind, int]
"""The number of findings by kind. Kinds without findings are omitted."""


def _order_counts(counts: KindCounts) -> dict[FindingKind, int]:
    return {kind: counts[kind] for kind in FindingKind if counts.get(kind)}


def _sort_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(labels.items()))


_CountsField = Annotated[
    KindCounts,
    PlainSerializer(_order_counts),
    Field(description="The number of findings by kind. Kinds without findings are omitted."),
]


def _sort_teams(teams: Mapping[str, KindCounts]) -> dict[str, _CountsField]:
    return {team: teams[team] for team in sorted(teams)}


Seconds = Annotated[float, Field(description="The duration in seconds.")]
Labels = Annotated[Mapping[str, str], Field(description="The labels of the cluster in the fleet file.")]


@dataclass(frozen=True, slots=True)
class ClusterFingerprints:
    """Hashes of one cluster, with which the next audit detects changes; see `fleet.tables.fingerprints`.

    If neither ``declared`` nor ``live`` has changed by then, the next audit copies the findings of this audit
    instead of comparing the cluster again.
    """

    schema_name = "ClusterFingerprintsDocument"

    declared: Annotated[
        str,
        Field(description="A hash of the declared and owned resources, policies, options and versions."),
    ]
    live: Annotated[str, Field(description="A hash of the live objects.")]
    findings: Annotated[str, Field(description="A hash of the findings of the cluster.")]


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster of an audit.

    read: the number of live objects that were read. Not in summary.json.
    others: the counts of live objects other than topics, by object type. Not in summary.json.
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
        str | None, Field(description="The reason why the cluster was not read, or read only partially.")
    ] = None
    notice: Annotated[str | None, Field(description="A notice about checks that could not be completed.")] = (
        None
    )
    unchanged: Annotated[
        bool,
        Field(
            description="Whether nothing had changed since the previous audit, so that its findings were "
            "carried over."
        ),
    ] = False
    fingerprints: Annotated[
        ClusterFingerprints | None,
        Field(
            description="null if the next audit must compare the cluster again, because it was not read or "
            "policies of its project run custom code."
        ),
    ] = None
    read: Annotated[int, Field(exclude=True)] = 0
    others: Annotated[tuple[ObjectCount, ...], Field(exclude=True)] = ()

    @property
    def is_partial(self) -> bool:
        """Whether the cluster was read only partially."""
        return self.error is not None and (self.read > 0 or self.topics > 0) and self.declared > 0


@dataclass(frozen=True, slots=True)
class Since:
    """A comparison of an audit with an earlier audit, which is called the baseline.

    audit_id, taken_at: the id and the time of the baseline.
    new: the number of findings that the baseline does not contain.
    known: the number of findings that the baseline also contains.
    ``mended``: the number of fixed findings of the baseline.
    """

    audit_id: str
    taken_at: Time
    new: int
    known: int
    mended: int


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The number of findings in one earlier audit.

    The number includes older findings that the audit did not check again.
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
    path: Annotated[
        str | None, Field(description="The path of the field; null for findings about whole resources.")
    ]
    count: int


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one kind and one severity.

    oldest: the time of the first audit that contains the oldest of these findings.
    """

    schema_name = "FindingGroupDocument"

    finding: FindingKind
    severity: FindingSeverity
    count: int
    oldest: Time


@dataclass(frozen=True, slots=True)
class AcceptedFindings:
    """An AcceptedDrift of the fleet, and the number of findings that it accepts.

    count: 0 if the drift no longer exists, or if it is no longer accepted.
    expired: whether the drift is no longer accepted. Its findings are reported again.
    """

    schema_name = "AcceptedFindingsDocument"

    name: str
    reason: str
    owner: str | None
    expires: Annotated[str, Field(description="The last day on which the drift is accepted (UTC).")]
    expired: bool
    count: int


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """The summary of an audit, also written to ``summary.json``. It contains counts, but no findings."""

    audit_id: str
    fleet: str
    taken_at: Time
    seconds: Seconds
    clusters: tuple[ClusterSummary, ...]
    found: _CountsField
    teams: Annotated[
        Mapping[str, KindCounts],
        PlainSerializer(_sort_teams),
        Field(
            description="The number of findings by team and kind. The team is the value of the label 'team'; "
            "it is empty for resources without this label."
        ),
    ] = field(default_factory=dict)
    heat: Annotated[
        tuple[HeatCell, ...], Field(description="The number of findings for the most frequent fields.")
    ] = ()
    since: Annotated[Since | None, Field(description="null if there is no earlier audit.")] = None
    unseen: Annotated[
        KindCounts,
        PlainSerializer(_order_counts),
        Field(description="The number of earlier findings that this audit did not check again, by kind."),
    ] = field(default_factory=dict)
    trend: Annotated[tuple[TrendPoint, ...], Field(description="Earlier audits, oldest first.")] = ()
    groups: Annotated[
        tuple[FindingGroup, ...],
        Field(description="The findings by kind and severity, the most urgent first."),
    ] = ()
    accepted: Annotated[
        tuple[AcceptedFindings, ...],
        Field(description="The accepted drift of the fleet. No other count includes accepted findings."),
    ] = ()
    rows: Annotated[
        Mapping[str, int],
        Field(description="The number of rows in the tables of the audit, by table."),
    ] = field(default_factory=dict)

    @property
    def remembered(self) -> KindCounts:
        """The number of findings by kind.

        Earlier findings that this audit did not check again are included.
        """
        total_counts = ((kind, self.found.get(kind, 0) + self.unseen.get(kind, 0)) for kind in FindingKind)
        return {kind: count for kind, count in total_counts if count}

    @property
    def unchanged_count(self) -> int:
        """The number of unchanged clusters, whose findings were copied from an earlier audit."""
        return sum(cluster.unchanged for cluster in self.clusters)

    @property
    def incomplete(self) -> tuple[ClusterSummary, ...]:
        """The clusters that could not be read, or could be read only partially."""
        return tuple(cluster for cluster in self.clusters if cluster.error is not None)


def require_all_rows(summary: AuditSummary, table: str, count: int, source: str) -> None:
    """Raise KdeclareError if a table of an earlier audit has fewer or more rows than the audit wrote.

    Missing rows would make findings look new, or fixed. Spark skips missing files without an error.

    count: the number of rows that were read. source: the path of the table, for the error.
    """
    written = summary.rows.get(table, count)  # version 0.1 did not record the numbers
    if count != written:
        raise KdeclareError(
            error(
                "bad-audit",
                "Audit table incomplete",
                f"{source} has {count:,} rows, but {written:,} rows were written. Nothing was changed.",
                hint="Restore the original files of the table, some of which may have been deleted, "
                "truncated or duplicated. To continue without this audit, delete "
                f"audits/{summary.audit_id}.json.",
            )
        )


def dump_summary(summary: AuditSummary) -> str:
    """Return the contents of ``summary.json``, ending in a newline."""
    return json.dumps(dump_document(summary), indent=1, ensure_ascii=False) + "\n"


def parse_summary(text: str, source: str = "summary.json") -> AuditSummary:
    """Parse the contents of ``summary.json``.

    source: the name of the file, for errors.

    Raises KdeclareError (``bad-audit``) if the format version is not supported, or if the file is not the
    summary of an audit.
    """
    return _FILE_FORMAT.bind(AuditSummary, text, source)


@dataclass(frozen=True, slots=True)
class AuditRun:
    """The id of an audit, the name of its fleet, and its start time."""

    audit_id: str
    fleet: str
    began: datetime


@dataclass(frozen=True, slots=True)
class EarlierAudits:
    """The two earlier audits that a new audit of a fleet is compared with.

    newest: the latest audit. It contains the time at which each finding was first seen.
    since: the baseline. Findings that the baseline does not contain are new.
    """

    newest: AuditSummary
    since: AuditSummary


@dataclass(frozen=True, slots=True)
class Audit:
    """The data that the report of an audit shows.

    rows: the findings, the worst first, up to a limit.
    left_out: the number of findings that are not in ``rows``.
    ``mended``: the fixed findings, the worst first, up to a limit.
    counts: the numbers of all findings.
    links: builds the URLs of manifests; None if reports have no links.
    """

    summary: AuditSummary
    rows: tuple[AuditRow, ...]
    left_out: int = 0
    mended: tuple[AuditRow, ...] = ()
    counts: tuple[FindingCount, ...] = ()
    links: ManifestLinks | None = None

    def find_url(self, row: AuditRow) -> str | None:
        """Return the URL of the manifest of a finding; None if there is no link."""
        return None if self.links is None or row.source is None else self.links.find_url(row.source)
