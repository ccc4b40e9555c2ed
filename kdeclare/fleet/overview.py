"""The results of planning and applying a fleet, by cluster.

`FleetPlan` is the document ``overview.json``.
"""

from collections import Counter
from dataclasses import field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Hidden, Second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Summary
from kdeclare.fleet.findings import Seconds
from kdeclare.fleet.rows import FileFormat

_FILE_FORMAT = FileFormat(
    code="bad-overview",
    name="Overview",
    broken="Not an overview of plans",
    command="kdeclare fleet plan",
    invalid_hint="Plan the fleet again.",
    version_hint="Plan the fleet again, or use the kdeclare version that wrote the file.",
)


class PlanExit(StrEnum):
    """The outcome of the plan of one cluster; the values are those of a plan's outcome."""

    NO_CHANGES = "no-changes"
    CHANGES = "changes"
    DENIED = "denied"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """The plan of one cluster."""

    name: str
    plan_id: Annotated[str | None, Field(description="null if no plan could be made.")]
    summary: Summary
    changes: Annotated[int, Field(description="The number of resources that the plan changes.")]
    exit: PlanExit
    error: Annotated[str | None, Field(description="Why no plan could be made.")] = None


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The plans of a fleet, also in overview.json of their folder.

    Clusters are in the order of the fleet file; the plan of each is in ``<name>.plan.json`` next to
    overview.json.
    """

    fleet: str
    taken_at: Annotated[Second, Field(description="UTC, ISO 8601.")]
    seconds: Seconds
    adopt: Annotated[bool, Field(description="Whether the plans were made with --adopt.")]
    clusters: tuple[PlannedCluster, ...]


class AppliedStatus(StrEnum):
    """The status of a cluster in an apply of the fleet."""

    DONE = "done"
    NOTHING = "nothing"  # its plan has no changes
    DENIED = "denied"  # a policy or a guard denied a part of the plan; the rest is done
    PARTIAL = "partial"
    FAILED = "failed"
    STALE = "stale"  # the cluster is no longer as planned, and nothing was done
    LOCKED = "locked"  # another command holds its state
    SKIPPED = "skipped"  # done by an earlier apply of the same plans
    NOT_BEGUN = "not-begun"  # the apply stopped before its wave

    @property
    def is_done(self) -> bool:
        """Whether the whole plan has been applied, now or by an earlier apply."""
        return self in (AppliedStatus.DONE, AppliedStatus.NOTHING, AppliedStatus.SKIPPED)

    @property
    def is_finished(self) -> bool:
        """Whether another apply of these plans would have nothing left to do."""
        return self in (
            AppliedStatus.DONE,
            AppliedStatus.NOTHING,
            AppliedStatus.SKIPPED,
            AppliedStatus.DENIED,
        )


@dataclass(frozen=True, slots=True)
class AppliedCluster:
    """The result of an apply for one cluster."""

    name: str
    wave: Annotated[int, Field(description="Counted from 1; 0 if there was nothing to start.")]
    status: AppliedStatus
    run_id: Annotated[str | None, Field(description="The id of the run in the cluster's history.")] = None
    done: Annotated[int, Field(description="The number of successful operations.")] = 0
    operations: int = 0
    message: Annotated[str, Field(description="Why the plan is not applied, or additional information.")] = ""


@dataclass(frozen=True, slots=True)
class FleetApply:
    """The result of an apply for a fleet.

    interrupted: whether Ctrl-C stopped it.
    """

    fleet: str
    seconds: Seconds
    stopped: Annotated[str | None, Field(description="Why no more clusters were started.")] = None
    counts: Annotated[dict[AppliedStatus, int], Field(description="The number of clusters by status.")] = (
        field(init=False, default_factory=dict)
    )
    clusters: tuple[AppliedCluster, ...] = ()
    interrupted: Hidden[bool] = False

    def __post_init__(self) -> None:
        status_counts = Counter(cluster.status for cluster in self.clusters)
        object.__setattr__(self, "counts", {status: status_counts[status] for status in AppliedStatus})


def parse_overview(text: str, source: str) -> FleetPlan:
    """Parse the text of an overview.json, whose path is ``source``.

    Raises KdeclareError (bad-overview) for another format version, and for text that is not an overview.
    """
    return _FILE_FORMAT.bind(FleetPlan, text, source, absent={"adopt": False})  # version 0.1 lacks the field
