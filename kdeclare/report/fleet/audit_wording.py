"""The wording and the order of findings in all reports of an audit."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, dump_canonical_json, parse_json
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, is_secret
from kdeclare.fleet.audit_summary import AcceptedFindings, AuditSummary, ClusterSummary, KindCounts
from kdeclare.fleet.finding_status import NEW
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity
from kdeclare.report.elements.values import (
    UNSET,
    format_count,
    format_value,
    join_nonempty,
    sanitize_for_terminal,
)
from kdeclare.report.run.history_text import format_time

KIND_MEANINGS = {
    FindingKind.UNREACHABLE: "could not be read",
    FindingKind.MISSING: "owned, but missing",
    FindingKind.CHANGED: "changed outside kdeclare",
    FindingKind.CONTESTED: "managed by several projects",
    FindingKind.POLICY: "violates a policy",
    FindingKind.PENDING: "declared, not applied yet",
    FindingKind.ORPHANED: "owned, no longer declared",
    FindingKind.UNMANAGED: "neither declared nor owned",
    FindingKind.UNUSED: "no writes and no readers",
}
"""The explanation of each kind of finding."""

NO_TEAM = "(no team)"
"""The text that is shown as the team of a resource without the label ``team``."""


def format_headline(summary: AuditSummary, with_counts: bool = True) -> str:
    """Return the headline of an audit. The headline starts with "Drift" or "No drift".

    with_counts: whether the headline contains the number of findings of each kind.
    """
    clusters = f"{format_count(len(summary.clusters), 'cluster')} of {sanitize_for_terminal(summary.fleet)}"
    partial_count = sum(cluster.is_partial for cluster in summary.incomplete)
    unread_count = len(summary.incomplete) - partial_count
    drift_counts = _select_drift(summary.found)
    if drift_counts:
        drifted_count = sum(bool(_select_drift(cluster.found)) for cluster in summary.clusters)
        gaps = join_nonempty(
            [
                f"{unread_count:,} not read" if unread_count else "",
                f"{partial_count:,} only partially read" if partial_count else "",
            ]
        )
        sentence_start = f"Drift in {drifted_count:,} of {clusters}{f', {gaps}' if gaps else ''}"
        return f"{sentence_start}{f': {format_kind_counts(drift_counts)}' if with_counts else ''}."
    if unread_count:
        gaps = f", {partial_count:,} only partially read" if partial_count else ""
        return (
            f"No drift found, but not everything could be read: "
            f"{unread_count:,} of {clusters} not read{gaps}."
        )
    if partial_count:
        return (
            f"No drift found, but not everything could be read: "
            f"{partial_count:,} of {clusters} only partially read."
        )
    if count_findings(summary.found):
        resources = format_count(count_findings(summary.found), "resource")
        return f"No drift found, but not everything could be read: {resources} in {clusters} not read."
    others = ((o.one, o.many, o.own) for cluster in summary.clusters for o in cluster.others)
    object_counts = format_object_counts(sum(cluster.topics for cluster in summary.clusters), others)
    return f"No drift in {clusters} with {object_counts}."


_MAX_NOUNS = 3


def format_object_counts(topics: int, other_counts: Iterable[tuple[str, str, int]]) -> str:
    """Format the number of objects by type, such as ``200 topics, 12 flags``.

    At most three types are named. The objects of all other types are counted together.

    other_counts: for each type other than topics, its singular noun, its plural noun and its count.
    """
    totals: dict[tuple[str, str], int] = {}
    for one, many, count in other_counts:
        totals[one, many] = totals.get((one, many), 0) + count
    counted_nouns = [(count, one, many) for (one, many), count in totals.items() if count]
    if topics or not counted_nouns:
        counted_nouns.insert(0, (topics, "topic", "topics"))
    other_total = sum(count for count, _, _ in counted_nouns[_MAX_NOUNS:])
    shown_counts = [format_count(count, one, many) for count, one, many in counted_nouns[:_MAX_NOUNS]]
    return join_nonempty([*shown_counts, format_count(other_total, "other object") if other_total else ""])


def sum_objects(cluster: ClusterSummary) -> int:
    """Return the number of live objects of a cluster. Internal objects of the system are not counted."""
    return cluster.topics + sum(count.own for count in cluster.others)


def choose_object_noun(clusters: Collection[ClusterSummary]) -> str:
    """Return a plural noun for live objects, such as ``topics``, or ``objects`` if their types differ."""
    nouns = {"topics" for cluster in clusters if cluster.topics}
    nouns |= {count.many for cluster in clusters for count in cluster.others if count.own}
    return next(iter(nouns), "topics") if len(nouns) < 2 else "objects"


def format_comparison(summary: AuditSummary) -> str:
    """Return a sentence that compares the audit with the earlier one; empty without an earlier audit."""
    comparison = summary.since
    if comparison is None:
        return ""
    counts = join_nonempty(
        [f"{comparison.new:,} new", f"{comparison.known:,} known", f"{comparison.mended:,} fixed"]
    )
    line = (
        f"Since audit {sanitize_for_terminal(comparison.audit_id)} "
        f"({format_time(comparison.taken_at)}): {counts}."
    )
    unseen = count_findings(summary.unseen)
    return f"{line} {format_count(unseen, 'earlier finding')} not checked again." if unseen else line


def format_unchanged(summary: AuditSummary) -> str:
    """Return a sentence about clusters without changes since the previous audit; empty if there are none."""
    count, total = summary.unchanged_count, len(summary.clusters)
    if not count:
        return ""
    if count == total:
        return "No cluster has changed since the previous audit. All findings were carried over."
    clusters = f"{count:,} of {format_count(total, 'cluster')}"
    return f"{clusters} did not change since the previous audit. Their findings were carried over."


def format_kind_counts(counts: KindCounts) -> str:
    """Format the number of findings of each kind, worst kind first, such as ``2 missing, 5 changed``.

    Return an empty string if there are no findings.
    """
    return join_nonempty(f"{counts[kind]:,} {kind.value}" for kind in FindingKind if counts.get(kind))


def count_findings(counts: KindCounts) -> int:
    """Return the total number of findings of all kinds."""
    return sum(counts.values())


def _select_drift(counts: KindCounts) -> KindCounts:
    """Return the counts of findings that are drift: all kinds except UNREACHABLE."""
    return {kind: count for kind, count in counts.items() if count and kind is not FindingKind.UNREACHABLE}


def list_shown_kinds(summary: AuditSummary) -> list[FindingKind]:
    """Return the kinds of findings that tables list. UNUSED is included only if there are such findings.

    Audits search for unused objects only if the fleet file enables this search.
    """
    return [kind for kind in FindingKind if kind is not FindingKind.UNUSED or summary.found.get(kind)]


def sort_by_findings(clusters: Iterable[ClusterSummary]) -> list[ClusterSummary]:
    """Return the clusters that have findings, the cluster with the most findings first."""
    affected_clusters = [cluster for cluster in clusters if count_findings(cluster.found)]
    return sorted(affected_clusters, key=lambda cluster: (-count_findings(cluster.found), cluster.name))


def list_teams_by_findings(summary: AuditSummary) -> list[tuple[str, KindCounts]]:
    """Return the teams that have findings, with their counts. The team with the most findings comes first.

    Findings about resources without a team are counted under an empty name.
    """
    affected_teams = [(team, counts) for team, counts in summary.teams.items() if count_findings(counts)]
    return sorted(affected_teams, key=lambda item: (-count_findings(item[1]), item[0]))


def sort_worst_first(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """Sort findings by severity and kind, the worst first. Within a kind, new findings come first."""

    def get_sort_key(row: AuditRow) -> tuple[int, int, bool, str, str, str, str]:
        urgency = row.severity.rank, row.finding.rank
        return *urgency, row.status != NEW, row.cluster, row.kind, row.name, row.path or ""

    return sorted(rows, key=get_sort_key)


@dataclass(frozen=True, slots=True)
class EqualFindings:
    """Findings that differ only in the resource, such as the same change to one config of thirty topics."""

    rows: Sequence[AuditRow]

    @property
    def first(self) -> AuditRow:
        """The finding that represents the others."""
        return self.rows[0]

    @property
    def where(self) -> str:
        """The name of the cluster, or the number of clusters if there are several."""
        clusters = {row.cluster for row in self.rows}
        return self.first.cluster if len(clusters) == 1 else format_count(len(clusters), "cluster")

    @property
    def resources(self) -> str:
        """The resource, or, for several findings, the number and kind of the resources."""
        row, count = self.first, len(self.rows)
        return f"{row.kind}/{row.name}" if count == 1 else f"{count:,} × {row.kind}"

    @property
    def names(self) -> str:
        """The names of the first few resources, and the number of the others; empty for a single finding."""
        if len(self.rows) == 1:
            return ""
        clusters = {row.cluster for row in self.rows}
        names = [row.name if len(clusters) == 1 else f"{row.cluster}/{row.name}" for row in self.rows]
        more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
        return f"{', '.join(names[:_MAX_NAMES])}{more}"


_MAX_NAMES = 4


def group_equal_findings(rows: Iterable[AuditRow]) -> list[EqualFindings]:
    """Group findings that differ only in the resource.

    The groups are in the order in which their first findings appear in ``rows``.
    """
    groups: dict[tuple[object, ...], list[AuditRow]] = {}
    for row in rows:
        change = row.finding, row.severity, row.kind, row.path, row.op, row.before, row.after
        groups.setdefault((*change, row.message, row.status), []).append(row)
    return [EqualFindings(group) for group in groups.values()]


def format_age(rows: Iterable[AuditRow], taken_at: datetime) -> str:
    """Return the age of a group of findings: ``new``, or how long the oldest finding has been open.

    The result is ``new`` if the first finding in ``rows`` has the status ``new``, that is, if the earlier
    audit did not contain it. Otherwise, see `format_open_time`.
    """
    listed = list(rows)
    return NEW if listed[0].status == NEW else format_open_time(listed, taken_at)


def format_open_time(rows: Iterable[AuditRow], taken_at: datetime) -> str:
    """Return how long the oldest of some findings has been open, such as ``open for 12 days``.

    The status of the findings does not matter. If the oldest finding has been open for less than half a day,
    return an empty string.
    """
    # nightly audits do not read a cluster at exactly the same time of day, so full days would be one too few
    days = round((taken_at - min(row.first_seen for row in rows)) / timedelta(days=1))
    return f"open for {format_count(days, 'day')}" if days > 0 else ""


def format_accepted(summary: AuditSummary) -> list[tuple[str, str]]:
    """Return the name and the explanation of each accepted drift. The explanation ends with the reason."""
    return [(item.name, f"{_explain_accepted(item)} {item.reason}") for item in summary.accepted]


def _explain_accepted(item: AcceptedFindings) -> str:
    owner = f" by {item.owner}" if item.owner else ""
    if item.expired:
        return f"Accepted{owner} until {item.expires}. Since then, its findings are reported again."
    if not item.count:
        return "It accepted no finding of this audit."
    return f"{format_count(item.count, 'finding')} accepted{owner} until {item.expires}."


def format_severities(summary: AuditSummary) -> str:
    """Format the number of findings of each severity, such as ``3 high, 40 low``; empty if there are none."""
    totals = dict.fromkeys(FindingSeverity, 0)
    for group in summary.groups:
        totals[group.severity] += group.count
    return join_nonempty(f"{count:,} {severity.value}" for severity, count in totals.items() if count)


def format_sides(row: AuditRow) -> tuple[str, str]:
    """Return the old and the new value of a finding, as text. Both are empty if the finding has no values."""
    if row.before is None and row.after is None:
        return "", ""
    before, after = (_format_side(text, row.path) for text in (row.before, row.after))
    return before, after


def mask_raw_value(text: str | None) -> str | None:
    """Mask the hashes of secrets in a value of a finding, and return the value as JSON.

    text: the value as JSON; None if the finding has no value. The result is then None, too.
    """
    return None if text is None else dump_canonical_json(_mask_secrets(_parse_value(text)))


def format_change(row: AuditRow) -> str:
    """Return the values of a finding in the form ``before → after``.

    If there is no new value, return only ``before``. If no field differs, return an empty string.
    """
    return format_values(row.path, row.op, row.before, row.after)


def format_values(path: str | None, op: str | None, before: str | None, after: str | None) -> str:
    """Return the values of a finding as text; see `format_change`. before, after: the values as JSON."""
    if path is None or (before is None and after is None):
        return ""
    old, new = _format_side(before, path), _format_side(after, path)
    if not old:
        return ""
    return old if op is None and after is None else f"{old} → {new}"


def _format_side(text: str | None, path: str | None) -> str:
    if text is None:
        return UNSET if path else ""
    return format_value(_mask_secrets(_parse_value(text)), path or "")


def _parse_value(text: str) -> JsonValue:
    """Parse JSON. Return invalid JSON as text, so that a damaged finding does not break the report."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _mask_secrets(value: JsonValue) -> JsonValue:
    if is_secret(value):
        return SENSITIVE_MASK
    if isinstance(value, dict):
        return {key: _mask_secrets(item) for key, item in value.items()}
    return [_mask_secrets(item) for item in value] if isinstance(value, list) else value
