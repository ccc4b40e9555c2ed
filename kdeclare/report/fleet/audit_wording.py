"""What every report of an audit says in the same words: its headline, its kinds, its values, its order."""

from collections.abc import Collection, Iterable

from kdeclare.core.jsontypes import JsonValue, dump_canonical_json, parse_json
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, is_secret
from kdeclare.fleet.findings import AuditRow, AuditSummary, ClusterSummary, FindingKind, KindCounts
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
    FindingKind.MISSING: "owned, and gone",
    FindingKind.CHANGED: "changed outside kdeclare",
    FindingKind.POLICY: "against a policy",
    FindingKind.PENDING: "declared, not applied yet",
    FindingKind.ORPHANED: "owned, declared no longer",
    FindingKind.UNMANAGED: "neither declared nor owned",
}
"""Of each kind, what it says of a resource."""

NO_TEAM = "(no team)"
"""Stands for the team of resources without the label."""

_RANK = {kind: number for number, kind in enumerate(FindingKind)}


def format_headline(summary: AuditSummary, with_counts: bool = True) -> str:
    """The one sentence that counts; "No drift." comes first where there is nothing to say.

    with_counts: with the findings of each kind.
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
                f"{partial_count:,} read in part" if partial_count else "",
            ]
        )
        sentence_start = f"Drift in {drifted_count:,} of {clusters}{f', {gaps}' if gaps else ''}"
        return f"{sentence_start}{f': {format_kind_counts(drift_counts)}' if with_counts else ''}."
    if unread_count:
        gaps = f"{f', {partial_count:,} only in part' if partial_count else ''}"
        return f"No drift in what could be read: {unread_count:,} of {clusters} could not{gaps}."
    if partial_count:
        return f"No drift in what could be read of {clusters}: {partial_count:,} only in part."
    if count_findings(summary.found):
        resources = format_count(count_findings(summary.found), "resource")
        return f"No drift in what could be read of {clusters}: {resources} could not."
    others = ((o.one, o.many, o.own) for cluster in summary.clusters for o in cluster.others)
    object_counts = format_object_counts(sum(cluster.topics for cluster in summary.clusters), others)
    return f"No drift. {clusters} with {object_counts} in order."


_MAX_NOUNS = 3


def format_object_counts(topics: int, other_counts: Iterable[tuple[str, str, int]]) -> str:
    """``200 topics, 12 flags``; of many sorts, some and the sum of the rest.

    other_counts: objects of other sorts, by what one and many of them are called.
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
    """The live objects of a cluster that are people's own."""
    return cluster.topics + sum(count.own for count in cluster.others)


def choose_object_noun(clusters: Collection[ClusterSummary]) -> str:
    """What `sum_objects` counts in these clusters, in the plural."""
    nouns = {"topics" for cluster in clusters if cluster.topics}
    nouns |= {count.many for cluster in clusters for count in cluster.others if count.own}
    return next(iter(nouns), "topics") if len(nouns) < 2 else "objects"


def format_comparison(summary: AuditSummary) -> str:
    """How it differs from an earlier audit; empty if it was not compared with one."""
    comparison = summary.since
    if comparison is None:
        return ""
    counts = join_nonempty(
        [f"{comparison.new:,} new", f"{comparison.known:,} known", f"{comparison.mended:,} mended"]
    )
    line = (
        f"Since audit {sanitize_for_terminal(comparison.audit_id)} "
        f"({format_time(comparison.taken_at)}): {counts}."
    )
    unseen = count_findings(summary.unseen)
    return f"{line} {format_count(unseen, 'earlier finding')} not looked at again." if unseen else line


def format_kind_counts(counts: KindCounts) -> str:
    """``2 missing, 5 changed``, worst first; empty when there is none."""
    return join_nonempty(f"{counts[kind]:,} {kind.value}" for kind in FindingKind if counts.get(kind))


def count_findings(counts: KindCounts) -> int:
    """Findings of all kinds."""
    return sum(counts.values())


def _select_drift(counts: KindCounts) -> KindCounts:
    """What is known to be otherwise; of what could not be read nothing is."""
    return {kind: count for kind, count in counts.items() if count and kind is not FindingKind.UNREACHABLE}


def sort_by_findings(clusters: Iterable[ClusterSummary]) -> list[ClusterSummary]:
    """The clusters with findings, those with the most first."""
    affected_clusters = [cluster for cluster in clusters if count_findings(cluster.found)]
    return sorted(affected_clusters, key=lambda cluster: (-count_findings(cluster.found), cluster.name))


def list_teams_by_findings(summary: AuditSummary) -> list[tuple[str, KindCounts]]:
    """The teams with findings, those with the most first; the empty name is for resources without one."""
    affected_teams = [(team, counts) for team, counts in summary.teams.items() if count_findings(counts)]
    return sorted(affected_teams, key=lambda item: (-count_findings(item[1]), item[0]))


def sort_worst_first(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """The order in which people read findings: by kind, the new ones first."""

    def get_sort_key(row: AuditRow) -> tuple[int, bool, str, str, str, str]:
        return _RANK[row.finding], row.status != "new", row.cluster, row.kind, row.name, row.path or ""

    return sorted(rows, key=get_sort_key)


def format_sides(row: AuditRow) -> tuple[str, str]:
    """Before and after as a person reads them; empty where that says nothing."""
    if row.before is None and row.after is None:
        return "", ""
    before, after = (_format_side(text, row.path) for text in (row.before, row.after))
    return before, after


def mask_raw_value(text: str | None) -> str | None:
    """The JSON text with what stands for secrets left out of it."""
    return None if text is None else dump_canonical_json(_mask_secrets(_parse_value(text)))


def format_change(row: AuditRow) -> str:
    """``before → after``, or as much of it as says something."""
    before, after = format_sides(row)
    if row.path is None or not before:
        return ""
    return before if row.op is None and row.after is None else f"{before} → {after}"


def _format_side(text: str | None, path: str | None) -> str:
    if text is None:
        return UNSET if path else ""
    return format_value(_mask_secrets(_parse_value(text)), path or "")


def _parse_value(text: str) -> JsonValue:
    """What is no JSON is shown as it is: a report must not fail for one row."""
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
