"""The findings about one resource over all stored audits: when each was seen, and when it was fixed.

Audits look at a cluster from time to time. A finding was open from its first audit at least until the last
audit that contains it, and at most until the next audit that checked the resource and did not find it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import Second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.fleet.audit_results import build_audit_row
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity

Row = Mapping[str, Any]
_Second = Annotated[Second, Field(description="UTC, ISO 8601.")]


class EpisodeStatus(StrEnum):
    """What the latest audit says about a finding."""

    OPEN = "open"
    ACCEPTED = "accepted"
    UNSEEN = "unseen"  # the audit did not check the resource again
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class FindingEpisode:
    """One finding, from the first audit that contains it until it was fixed.

    The values, the severity and the message are those of the latest audit that contains the finding.
    """

    schema_name = "FindingEpisodeDocument"

    id: str
    status: EpisodeStatus
    finding: FindingKind
    severity: FindingSeverity
    path: Annotated[str | None, Field(description="The field; null for findings about the whole resource.")]
    op: str | None
    before: Annotated[str | None, Field(description="The live value as JSON.")]
    after: Annotated[str | None, Field(description="The declared value as JSON.")]
    message: str
    first_seen: _Second
    last_seen: Annotated[_Second, Field(description="The latest audit that contains the finding.")]
    fixed_by: Annotated[
        _Second | None,
        Field(description="The first audit that checked the resource and did not find this; null if open."),
    ]
    accepted: Annotated[str | None, Field(description="The AcceptedDrift that accepts the finding.")]


@dataclass(frozen=True, slots=True)
class ResourceAudit:
    """What one audit says about a resource. open_rows, unseen_rows: rows about this resource only."""

    taken_at: datetime
    open_rows: Sequence[Row]
    unseen_rows: Sequence[Row]


def select_resource(rows: Iterable[Row], cluster: str, key: LiveKey) -> list[Row]:
    """Return the findings about one resource."""
    return [
        row
        for row in rows
        if row["cluster"] == cluster and row["kind"] == key.sort and row["name"] == key.key
    ]


def list_episodes(audits: Iterable[ResourceAudit]) -> list[FindingEpisode]:
    """Return the findings about a resource, in the order in which they were first seen.

    If a finding was fixed and came back, each time is an episode of its own.

    audits: all audits that include the cluster, oldest first.
    """
    finished: list[FindingEpisode] = []
    current: dict[tuple[FindingKind, str | None], FindingEpisode] = {}
    for audit in audits:
        remaining: dict[tuple[FindingKind, str | None], FindingEpisode] = {}
        for row in audit.open_rows:
            finding = build_audit_row(row)
            remaining[finding.finding, finding.path] = _build_episode(finding, audit, row["accepted"])
        for row in audit.unseen_rows:
            finding = build_audit_row(row)
            identity = finding.finding, finding.path
            earlier = current.get(identity) or _build_episode(finding, audit, row["accepted"])
            remaining[identity] = replace(earlier, status=EpisodeStatus.UNSEEN)
        for identity, episode in current.items():
            if identity not in remaining:
                finished.append(replace(episode, status=EpisodeStatus.FIXED, fixed_by=audit.taken_at))
        current = remaining
    episodes = [*finished, *current.values()]
    return sorted(episodes, key=lambda e: (e.first_seen, e.finding.rank, e.path or "", e.last_seen))


def _build_episode(row: AuditRow, audit: ResourceAudit, accepted: str | None) -> FindingEpisode:
    return FindingEpisode(
        row.id,
        EpisodeStatus.OPEN if accepted is None else EpisodeStatus.ACCEPTED,
        row.finding,
        row.severity,
        row.path,
        row.op,
        row.before,
        row.after,
        row.message,
        row.first_seen,
        audit.taken_at,
        None,
        accepted,
    )
