"""The JSON Schemas of what the commands about fleets print; three are files in their folders, too."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import CLOSED, SummaryDocument
from kdeclare.fleet.finding import FindingKind
from kdeclare.fleet.history import Turn
from kdeclare.fleet.overview import AppliedStatus, PlanExit
from kdeclare.report.schemas import schemas_of

Time = Annotated[str, Field(description="UTC, ISO 8601.")]
Seconds = Annotated[float, Field(description="From start to end.")]
Labels = Annotated[dict[str, str], Field(description="Those that the fleet file gives the cluster.")]
Found = Annotated[
    dict[FindingKind, int], Field(description="Findings by kind; what there is none of is left out.")
]


@with_config(CLOSED)
class ClusterDocument(TypedDict):
    """One cluster, and when it was read."""

    name: str
    labels: Labels
    cluster_id: str | None
    version: Annotated[str | None, Field(description="Kafka's, as far as the cluster tells.")]
    taken_at: Time | None


@with_config(CLOSED)
class SnapshotClusterDocument(ClusterDocument):
    """One cluster of a snapshot."""

    topics: Annotated[int, Field(description="With the internal ones.")]
    internal: int
    resources: Annotated[int, Field(description="Rows with a body.")]
    failed: Annotated[int, Field(description="Resources that could not be read.")]
    error: Annotated[str | None, Field(description="Why nothing is known of the cluster.")]


@with_config(CLOSED)
class SnapshotDocument(TypedDict):
    """The record of a snapshot, also in snapshots/ID.json of its folder."""

    format_version: Literal["1.0"]
    snapshot_id: str
    fleet: str
    taken_at: Time
    seconds: Seconds
    path: Annotated[str, Field(description="Where in the folder its rows are.")]
    clusters: list[SnapshotClusterDocument]


@with_config(CLOSED)
class AuditedClusterDocument(ClusterDocument):
    """One cluster of an audit."""

    topics: Annotated[int, Field(description="Live, without the internal ones.")]
    declared: Annotated[int, Field(description="Resources.")]
    found: Found
    error: Annotated[str | None, Field(description="Why nothing, or not all, is known of the cluster.")]
    notice: Annotated[str | None, Field(description="What else could not be told.")]


@with_config(CLOSED)
class HeatDocument(TypedDict):
    """How often a field of one name is found in one cluster."""

    cluster: str
    path: Annotated[str | None, Field(description="null for whole resources.")]
    count: int


@with_config(CLOSED)
class SinceDocument(TypedDict):
    """How an audit differs from an earlier one."""

    audit_id: str
    taken_at: Time
    new: int
    known: int
    mended: int


@with_config(CLOSED)
class TrendDocument(TypedDict):
    """One earlier audit."""

    audit_id: str
    taken_at: Time
    clusters: int
    found: Found


@with_config(CLOSED)
class AuditDocument(TypedDict):
    """An audit without its rows, also in summary.json of its folder."""

    format_version: Literal["1.0"]
    audit_id: str
    fleet: str
    taken_at: Time
    seconds: Seconds
    clusters: list[AuditedClusterDocument]
    found: Found
    teams: Annotated[
        dict[str, Found],
        Field(description="Findings by the label team of resources; the empty name is for those without."),
    ]
    heat: Annotated[list[HeatDocument], Field(description="Of the most frequent paths.")]
    since: Annotated[SinceDocument | None, Field(description="null where there is no earlier audit.")]
    unseen: Annotated[
        dict[FindingKind, int],
        Field(description="Findings of earlier audits that this one did not, or could not, look at again."),
    ]
    trend: Annotated[list[TrendDocument], Field(description="Earlier audits, the oldest first.")]


@with_config(CLOSED)
class PlannedClusterDocument(TypedDict):
    """The plan of one cluster."""

    name: str
    plan_id: Annotated[str | None, Field(description="null where no plan could be made.")]
    summary: SummaryDocument
    changes: Annotated[int, Field(description="Resources that it changes.")]
    exit: PlanExit
    error: Annotated[str | None, Field(description="Why no plan could be made.")]


@with_config(CLOSED)
class OverviewDocument(TypedDict):
    """The plans of a fleet, also in overview.json of their folder."""

    format_version: Literal["1.0"]
    fleet: str
    taken_at: Time
    seconds: Seconds
    adopt: Annotated[bool, Field(description="Whether the plans were made with --adopt.")]
    clusters: list[PlannedClusterDocument]


@with_config(CLOSED)
class AppliedClusterDocument(TypedDict):
    """What was done to one cluster."""

    name: str
    wave: Annotated[int, Field(description="From 1; 0 where there was nothing to begin.")]
    status: AppliedStatus
    run_id: Annotated[str | None, Field(description="Of the run in the cluster's history.")]
    done: Annotated[int, Field(description="Operations that ended well.")]
    operations: int
    message: Annotated[str, Field(description="Why it is not done, or what else should be known.")]


@with_config(CLOSED)
class FleetApplyDocument(TypedDict):
    """What was done to a fleet."""

    format_version: Literal["1.0"]
    fleet: str
    seconds: Seconds
    stopped: Annotated[str | None, Field(description="Why no more clusters were begun.")]
    counts: Annotated[dict[AppliedStatus, int], Field(description="Clusters by status.")]
    clusters: list[AppliedClusterDocument]


@with_config(CLOSED)
class FieldTurnDocument(TypedDict):
    """One field that is otherwise; null is "not set"."""

    path: str
    before: Any
    after: Any


@with_config(CLOSED)
class TurnDocument(TypedDict):
    """What one snapshot has otherwise than the one before it."""

    taken_at: Time
    snapshot_id: str
    turn: Turn
    seen_before: Annotated[Time | None, Field(description="When it was last read; null for the first time.")]
    error: Annotated[str | None, Field(description="Why it could not be read.")]
    fields: list[FieldTurnDocument]


@with_config(CLOSED)
class TopicHistoryDocument(TypedDict):
    """What became of one topic of one cluster."""

    format_version: Literal["1.0"]
    cluster: str
    topic: str
    snapshots: Annotated[int, Field(description="How many there are.")]
    history: Annotated[list[TurnDocument], Field(description="The oldest first.")]


def fleet_schemas() -> Mapping[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of(
        {
            "fleet-snapshot": SnapshotDocument,
            "fleet-audit": AuditDocument,
            "fleet-plan": OverviewDocument,
            "fleet-apply": FleetApplyDocument,
            "fleet-history": TopicHistoryDocument,
        }
    )
