"""The findings about one resource over all stored audits: when each finding was seen and fixed.

Audits check a cluster only from time to time. A finding was open from its first audit at least until the last
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
from kdeclare.core.jsontypes import JsonValue, parse_json
from kdeclare.fleet.audit_results import build_audit_row
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity

Row = Mapping[str, Any]
_Second = Annotated[Second, Field(description="UTC, ISO 8601.")]


class EpisodeStatus(StrEnum):
    """The status of a finding according to the latest audit."""

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
        Field(
            description="The first audit that checked the resource and no longer contains the finding; null "
            "if the finding is open."
        ),
    ]
    accepted: Annotated[str | None, Field(description="The AcceptedDrift that accepts the finding.")]


@dataclass(frozen=True, slots=True)
class ResourceAudit:
    """The findings about one resource in one audit.

    open_rows, unseen_rows: the rows about the resource in the tables ``findings`` and ``unseen``.
    """

    taken_at: datetime
    open_rows: Sequence[Row]
    unseen_rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class FindingSubject:
    """A live object whose findings are looked up.

    names: the names under which audits list findings about the object: the name of each resource that refers
        to it, and its own key, because findings about undeclared objects have no resource.
    elements: if the object is an element of a set, its values by path. Findings about other elements of the
        set are left out. None for other objects.
    """

    cluster: str
    kind: str
    names: frozenset[str]
    elements: Mapping[str, Sequence[JsonValue]] | None = None


def select_subject(rows: Iterable[Row], subject: FindingSubject) -> list[Row]:
    """Return the findings about one object."""
    return [
        row
        for row in rows
        if row["cluster"] == subject.cluster
        and row["kind"] == subject.kind
        and row["name"] in subject.names
        and _is_about_element(row, subject.elements)
    ]


def _is_about_element(row: Row, elements: Mapping[str, Sequence[JsonValue]] | None) -> bool:
    if elements is None or row["path"] is None:
        return True
    values = [parse_json(row[column]) for column in ("before", "after") if row[column] is not None]
    return any(
        element == value or (isinstance(value, list) and element in value)
        for element in elements.get(row["path"], ())
        for value in values
    )


_Identity = tuple[str, FindingKind, str | None]
"""What identifies a finding: the name of the resource, the kind of the finding, and the path of the field."""


def list_episodes(audits: Iterable[ResourceAudit]) -> list[FindingEpisode]:
    """Return the findings about a resource, in the order in which they were first seen.

    If a finding was fixed and came back, the result contains it once for each period in which it was open.

    audits: all audits that include the cluster, oldest first.
    """
    finished: list[FindingEpisode] = []
    current: dict[_Identity, FindingEpisode] = {}
    for audit in audits:
        remaining: dict[_Identity, FindingEpisode] = {}
        for row in audit.open_rows:
            finding = build_audit_row(row)
            identity = finding.name, finding.finding, finding.path
            remaining[identity] = _build_episode(finding, audit, row["accepted"])
        for row in audit.unseen_rows:
            finding = build_audit_row(row)
            identity = finding.name, finding.finding, finding.path
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
