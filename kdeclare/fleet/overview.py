"""What came of planning and applying a fleet, cluster by cluster.

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
    version_hint="Plan the fleet again, or use the kdeclare that wrote it.",
)


class PlanExit(StrEnum):
    """What the plan of one cluster comes to; the words of a plan's outcome."""

    NO_CHANGES = "no-changes"
    CHANGES = "changes"
    DENIED = "denied"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """The plan of one cluster."""

    name: str
    plan_id: Annotated[str | None, Field(description="null where no plan could be made.")]
    summary: Summary
    changes: Annotated[int, Field(description="Resources that it changes.")]
    exit: PlanExit
    error: Annotated[str | None, Field(description="Why no plan could be made.")] = None


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The plans of a fleet, also in overview.json of their folder.

    Clusters are in the order of the fleet's file; the plan of each is in ``<name>.plan.json`` beside it.
    """

    fleet: str
    taken_at: Annotated[Second, Field(description="UTC, ISO 8601.")]
    seconds: Seconds
    adopt: Annotated[bool, Field(description="Whether the plans were made with --adopt.")]
    clusters: tuple[PlannedCluster, ...]


class AppliedStatus(StrEnum):
    """How far a cluster got in an apply of the fleet."""

    DONE = "done"
    NOTHING = "nothing"  # its plan has no changes
    DENIED = "denied"  # a policy or a guard denied some of it; the rest is done
    PARTIAL = "partial"
    FAILED = "failed"
    STALE = "stale"  # the cluster is no longer as planned, and nothing was done
    LOCKED = "locked"  # another command holds its state
    SKIPPED = "skipped"  # done by an earlier apply of the same plans
    NOT_BEGUN = "not-begun"  # the apply stopped before its wave

    @property
    def is_done(self) -> bool:
        """Whether all that was planned has been applied, now or by an earlier apply."""
        return self in (AppliedStatus.DONE, AppliedStatus.NOTHING, AppliedStatus.SKIPPED)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left that another apply of these plans would do."""
        return self in (
            AppliedStatus.DONE,
            AppliedStatus.NOTHING,
            AppliedStatus.SKIPPED,
            AppliedStatus.DENIED,
        )


@dataclass(frozen=True, slots=True)
class AppliedCluster:
    """What was done to one cluster."""

    name: str
    wave: Annotated[int, Field(description="From 1; 0 where there was nothing to begin.")]
    status: AppliedStatus
    run_id: Annotated[str | None, Field(description="Of the run in the cluster's history.")] = None
    done: Annotated[int, Field(description="Operations that ended well.")] = 0
    operations: int = 0
    message: Annotated[str, Field(description="Why it is not done, or what else should be known.")] = ""


@dataclass(frozen=True, slots=True)
class FleetApply:
    """What was done to a fleet.

    interrupted: whether by Ctrl-C.
    """

    fleet: str
    seconds: Seconds
    stopped: Annotated[str | None, Field(description="Why no more clusters were begun.")] = None
    counts: Annotated[dict[AppliedStatus, int], Field(description="Clusters by status.")] = field(
        init=False, default_factory=dict
    )
    clusters: tuple[AppliedCluster, ...] = ()
    interrupted: Hidden[bool] = False

    def __post_init__(self) -> None:
        status_counts = Counter(cluster.status for cluster in self.clusters)
        object.__setattr__(self, "counts", {status: status_counts[status] for status in AppliedStatus})


def parse_overview(text: str, source: str) -> FleetPlan:
    """Return the plans of an overview.json, whose path is ``source``.

    Raises KdeclareError (bad-overview) for another format version, and for what is no overview.
    """
    return _FILE_FORMAT.bind(FleetPlan, text, source, absent={"adopt": False})  # version 0.1 does not say
