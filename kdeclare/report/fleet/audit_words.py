"""What every report of an audit says in the same words: its headline, its kinds, its values, its order."""

from collections.abc import Collection, Iterable

from kdeclare.core.jsontypes import JsonValue, canonical_json, parse_json
from kdeclare.core.secrets.secret_refs import SHOWN, is_secret
from kdeclare.fleet.findings import AuditRow, AuditSummary, ClusterSummary, Counts, FindingKind
from kdeclare.report.elements.values import UNSET, clean, listed, plural, show
from kdeclare.report.run.history_text import moment

MEANINGS = {
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


def headline(summary: AuditSummary, tallied: bool = True) -> str:
    """The one sentence that counts; "No drift." comes first where there is nothing to say.

    tallied: with the findings of each kind.
    """
    clusters = f"{plural(len(summary.clusters), 'cluster')} of {clean(summary.fleet)}"
    partly = sum(cluster.in_part for cluster in summary.incomplete)
    unread = len(summary.incomplete) - partly
    found = _drift(summary.found)
    if found:
        drifted = sum(bool(_drift(cluster.found)) for cluster in summary.clusters)
        lacks = listed(
            [f"{unread:,} not read" if unread else "", f"{partly:,} read in part" if partly else ""]
        )
        head = f"Drift in {drifted:,} of {clusters}{f', {lacks}' if lacks else ''}"
        return f"{head}{f': {tally(found)}' if tallied else ''}."
    if unread:
        lacks = f"{f', {partly:,} only in part' if partly else ''}"
        return f"No drift in what could be read: {unread:,} of {clusters} could not{lacks}."
    if partly:
        return f"No drift in what could be read of {clusters}: {partly:,} only in part."
    if total(summary.found):
        resources = plural(total(summary.found), "resource")
        return f"No drift in what could be read of {clusters}: {resources} could not."
    others = ((o.one, o.many, o.own) for cluster in summary.clusters for o in cluster.others)
    objects = count_objects(sum(cluster.topics for cluster in summary.clusters), others)
    return f"No drift. {clusters} with {objects} in order."


_NOUNS = 3


def count_objects(topics: int, others: Iterable[tuple[str, str, int]]) -> str:
    """``200 topics, 12 flags``; of many sorts, some and the sum of the rest.

    others: objects of other sorts, by what one and many of them are called.
    """
    totals: dict[tuple[str, str], int] = {}
    for one, many, count in others:
        totals[one, many] = totals.get((one, many), 0) + count
    found = [(count, one, many) for (one, many), count in totals.items() if count]
    if topics or not found:
        found.insert(0, (topics, "topic", "topics"))
    rest = sum(count for count, _, _ in found[_NOUNS:])
    shown = [plural(count, one, many) for count, one, many in found[:_NOUNS]]
    return listed([*shown, plural(rest, "other object") if rest else ""])


def sum_objects(cluster: ClusterSummary) -> int:
    """The live objects of a cluster that are people's own."""
    return cluster.topics + sum(count.own for count in cluster.others)


def name_objects(clusters: Collection[ClusterSummary]) -> str:
    """What `sum_objects` counts in these clusters, in the plural."""
    found = {"topics" for cluster in clusters if cluster.topics}
    found |= {count.many for cluster in clusters for count in cluster.others if count.own}
    return next(iter(found), "topics") if len(found) < 2 else "objects"


def since_line(summary: AuditSummary) -> str:
    """How it differs from an earlier audit; empty if it was not compared with one."""
    since = summary.since
    if since is None:
        return ""
    counts = listed([f"{since.new:,} new", f"{since.known:,} known", f"{since.mended:,} mended"])
    line = f"Since audit {clean(since.audit_id)} ({moment(since.taken_at)}): {counts}."
    unseen = total(summary.unseen)
    return f"{line} {plural(unseen, 'earlier finding')} not looked at again." if unseen else line


def tally(found: Counts) -> str:
    """``2 missing, 5 changed``, worst first; empty when there is none."""
    return listed(f"{found[kind]:,} {kind.value}" for kind in FindingKind if found.get(kind))


def total(found: Counts) -> int:
    """Findings of all kinds."""
    return sum(found.values())


def _drift(found: Counts) -> Counts:
    """What is known to be otherwise; of what could not be read nothing is."""
    return {kind: count for kind, count in found.items() if count and kind is not FindingKind.UNREACHABLE}


def by_total(clusters: Iterable[ClusterSummary]) -> list[ClusterSummary]:
    """The clusters with findings, those with the most first."""
    found = [cluster for cluster in clusters if total(cluster.found)]
    return sorted(found, key=lambda cluster: (-total(cluster.found), cluster.name))


def teams_by_total(summary: AuditSummary) -> list[tuple[str, Counts]]:
    """The teams with findings, those with the most first; the empty name is for resources without one."""
    found = [(team, counts) for team, counts in summary.teams.items() if total(counts)]
    return sorted(found, key=lambda item: (-total(item[1]), item[0]))


def worst_first(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """The order in which people read findings: by kind, the new ones first."""

    def key(row: AuditRow) -> tuple[int, bool, str, str, str, str]:
        return _RANK[row.finding], row.status != "new", row.cluster, row.kind, row.name, row.path or ""

    return sorted(rows, key=key)


def sides(row: AuditRow) -> tuple[str, str]:
    """Before and after as a person reads them; empty where that says nothing."""
    if row.before is None and row.after is None:
        return "", ""
    before, after = (_side(text, row.path) for text in (row.before, row.after))
    return before, after


def raw(text: str | None) -> str | None:
    """The JSON text with what stands for secrets left out of it."""
    return None if text is None else canonical_json(_masked(_value(text)))


def change(row: AuditRow) -> str:
    """``before → after``, or as much of it as says something."""
    before, after = sides(row)
    if row.path is None or not before:
        return ""
    return before if row.op is None and row.after is None else f"{before} → {after}"


def _side(text: str | None, path: str | None) -> str:
    if text is None:
        return UNSET if path else ""
    return show(_masked(_value(text)), path or "")


def _value(text: str) -> JsonValue:
    """What is no JSON is shown as it is: a report must not fail for one row."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _masked(value: JsonValue) -> JsonValue:
    if is_secret(value):
        return SHOWN
    if isinstance(value, dict):
        return {key: _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value
