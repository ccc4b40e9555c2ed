"""``summary.json``: an audit without its rows, for scripts and for the audits that come later.

format_version  "1.0"; another one is not read
audit_id        its name in the folder of audits
fleet           the name in the fleet's file
taken_at        when it began; all times are UTC, ISO 8601, to the microsecond
seconds         from start to end
clusters        [{name, labels: {}, cluster_id, version (Kafka's), taken_at, topics (live, without internal
                ones), declared (resources), found, error,
                notice}]; cluster_id, version, taken_at, error and notice may be null; an error says why
                nothing, or not all, is known of the cluster, a notice what else could not be told
found           {kind: count} of findings of all clusters: unreachable, missing, changed, policy, pending,
                orphaned, unmanaged; what there is none of is left out
teams           {name: {kind: count}} by the label `team` of resources; "" for those without one
heat            [{cluster, path, count}] of the most frequent paths; path null for whole resources
since           null, or {audit_id, taken_at, new, known, mended} against that earlier audit
unseen          {kind: count} of earlier audits that this one did not look at again, or could not: not
                among ``found``
trend           [{audit_id, taken_at, clusters, found}] of earlier audits, oldest first
"""

import json
from datetime import UTC, datetime
from typing import Any

from kdeclare.fleet.documents import Document
from kdeclare.fleet.finding import FindingKind
from kdeclare.fleet.rows import FORMAT_VERSION
from kdeclare.fleet.summary import AuditSummary, ClusterSummary, Counts, Since, TrendPoint

_DOCUMENT = Document(
    code="bad-audit",
    name="Audit",
    broken="Not the summary of an audit",
    writer="kdeclare fleet audit",
    renew="Take it away, or audit into another folder.",
    other="Audit into another folder, or use the kdeclare that wrote it.",
)


def summary_document(summary: AuditSummary) -> dict[str, Any]:
    """All of it as JSON-able data, as said above; equal summaries are equal, to the order of keys."""
    return {
        "format_version": FORMAT_VERSION,
        "audit_id": summary.audit_id,
        "fleet": summary.fleet,
        "taken_at": _time(summary.taken_at),
        "seconds": summary.seconds,
        "clusters": [_cluster(cluster) for cluster in summary.clusters],
        "found": _counts(summary.found),
        "teams": {team: _counts(summary.teams[team]) for team in sorted(summary.teams)},
        "heat": [{"cluster": c.cluster, "path": c.path, "count": c.count} for c in summary.heat],
        "since": summary.since and _since(summary.since),
        "unseen": _counts(summary.unseen),
        "trend": [_point(point) for point in summary.trend],
    }


def summary_json(summary: AuditSummary) -> str:
    """The text of summary.json, ending in a new line."""
    return json.dumps(summary_document(summary), indent=1, ensure_ascii=False) + "\n"


def summary_from_json(text: str, where: str = "summary.json") -> AuditSummary:
    """The audit that a text is of; ``where`` names the file in errors.

    Raises KdeclareError (bad-audit) for another format version, and for what is no summary of an audit.
    """
    _DOCUMENT.read(text, where)
    from pydantic import TypeAdapter, ValidationError  # made only by who looks back: it takes its time

    try:
        return TypeAdapter(AuditSummary).validate_json(text, strict=True)
    except ValidationError:
        raise _DOCUMENT.unreadable(where) from None


def _cluster(cluster: ClusterSummary) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "labels": dict(sorted(cluster.labels.items())),
        "cluster_id": cluster.cluster_id,
        "version": cluster.version,
        "taken_at": cluster.taken_at and _time(cluster.taken_at),
        "topics": cluster.topics,
        "declared": cluster.declared,
        "found": _counts(cluster.found),
        "error": cluster.error,
        "notice": cluster.notice,
    }


def _since(since: Since) -> dict[str, Any]:
    counts = {"new": since.new, "known": since.known, "mended": since.mended}
    return {"audit_id": since.audit_id, "taken_at": _time(since.taken_at)} | counts


def _point(point: TrendPoint) -> dict[str, Any]:
    return {
        "audit_id": point.audit_id,
        "taken_at": _time(point.taken_at),
        "clusters": point.clusters,
        "found": _counts(point.found),
    }


def _counts(found: Counts) -> dict[str, int]:
    return {kind.value: found[kind] for kind in FindingKind if found.get(kind)}


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
