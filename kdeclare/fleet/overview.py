"""The plans of a fleet, and the results of applying them.

The file ``overview.json`` contains a `FleetPlan`.
"""

from collections import Counter
from dataclasses import field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Hidden, Time
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Summary
from kdeclare.fleet.audit_summary import Seconds
from kdeclare.fleet.tables.rows import FileFormat

_FILE_FORMAT = FileFormat(
    code="bad-overview",
    name="Overview",
    broken="Not an overview of plans",
    command="kdeclare fleet plan",
    invalid_hint="Plan the fleet again.",
    version_hint="Plan the fleet again, or use the kdeclare version that wrote the file.",
)


class PlanExit(StrEnum):
    """The outcome of planning one cluster. The values are the same as for a plan outside of a fleet."""

    NO_CHANGES = "no-changes"
    CHANGES = "changes"
    DENIED = "denied"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """The plan of one cluster."""

    name: str
    plan_id: Annotated[str | None, Field(description="null if no plan could be created.")]
    summary: Summary
    changes: Annotated[int, Field(description="The number of resources that the plan changes.")]
    exit: PlanExit
    error: Annotated[str | None, Field(description="Why no plan could be created.")] = None


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The plans of all clusters of a fleet, also written to ``overview.json``.

    The clusters are in the order of the fleet file. The plan of each cluster is in the file
    ``<name>.plan.json`` next to ``overview.json``.
    """

    fleet: str
    taken_at: Time
    seconds: Seconds
    adopt: Annotated[bool, Field(description="Whether the plans were created with --adopt.")]
    clusters: tuple[PlannedCluster, ...]


class AppliedStatus(StrEnum):
    """The outcome of ``fleet apply`` for one cluster."""

    DONE = "done"
    NOTHING = "nothing"  # the plan has no changes
    DENIED = "denied"  # a policy or a guard denied some changes; the other changes were applied
    PARTIAL = "partial"
    FAILED = "failed"
    STALE = "stale"  # the cluster was changed after the plan was made, and nothing was applied
    LOCKED = "locked"  # another command has locked the state of the cluster
    SKIPPED = "skipped"  # an earlier apply of the same plans already applied this plan
    NOT_BEGUN = "not-begun"  # the apply stopped before the wave of this cluster

    @property
    def is_done(self) -> bool:
        """Whether all changes of the plan have been applied, now or by an earlier apply."""
        return self in (AppliedStatus.DONE, AppliedStatus.NOTHING, AppliedStatus.SKIPPED)

    @property
    def is_finished(self) -> bool:
        """Whether another ``fleet apply`` of the same plans would leave this cluster unchanged."""
        return self in (
            AppliedStatus.DONE,
            AppliedStatus.NOTHING,
            AppliedStatus.SKIPPED,
            AppliedStatus.DENIED,
        )


@dataclass(frozen=True, slots=True)
class AppliedCluster:
    """The result of ``fleet apply`` for one cluster."""

    name: str
    wave: Annotated[
        int, Field(description="The number of the wave, starting at 1; 0 if there was nothing to apply.")
    ]
    status: AppliedStatus
    run_id: Annotated[str | None, Field(description="The id of the run in the cluster's history.")] = None
    done: Annotated[int, Field(description="The number of successful operations.")] = 0
    operations: int = 0
    message: Annotated[
        str, Field(description="The reason why the plan was not applied, or other details.")
    ] = ""


@dataclass(frozen=True, slots=True)
class FleetApply:
    """The result of ``fleet apply`` for all clusters.

    interrupted: whether the user stopped the apply with Ctrl-C.
    """

    fleet: str
    seconds: Seconds
    stopped: Annotated[str | None, Field(description="Why the rollout stopped early.")] = None
    counts: Annotated[dict[AppliedStatus, int], Field(description="The number of clusters by status.")] = (
        field(init=False, default_factory=dict)
    )
    clusters: tuple[AppliedCluster, ...] = ()
    interrupted: Hidden[bool] = False

    def __post_init__(self) -> None:
        status_counts = Counter(cluster.status for cluster in self.clusters)
        object.__setattr__(self, "counts", {status: status_counts[status] for status in AppliedStatus})


def parse_overview(text: str, source: str) -> FleetPlan:
    """Parse the contents of ``overview.json``.

    source: the path of the file, for errors.

    Raises KdeclareError (``bad-overview``) if the format version is not supported, or if the file is not an
    overview.
    """
    # version 0.1 did not write ``adopt``
    return _FILE_FORMAT.bind(FleetPlan, text, source, absent={"adopt": False})
