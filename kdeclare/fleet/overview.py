"""What came of planning and applying a fleet, cluster by cluster: the values of overview.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from kdeclare.core.plan import Summary
from kdeclare.engine.planning.plan_document import SUMMARY_FIELDS, summary_document, timestamp
from kdeclare.fleet.documents import Document
from kdeclare.fleet.rows import FORMAT_VERSION

_DOCUMENT = Document(
    code="bad-overview",
    name="Overview",
    broken="Not an overview of plans",
    writer="kdeclare fleet plan",
    renew="Plan the fleet again.",
    other="Plan the fleet again, or use the kdeclare that wrote it.",
)


class PlanExit(StrEnum):
    """What the plan of one cluster comes to; the words of a plan's outcome."""

    NO_CHANGES = "no-changes"
    CHANGES = "changes"
    DENIED = "denied"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """The plan of one cluster.

    plan_id: None where no plan could be made; then ``error`` says why. changes: resources it changes.
    """

    name: str
    plan_id: str | None
    summary: Summary
    changes: int
    exit: PlanExit
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The plans of a fleet, in the order of its file; each is in ``<name>.plan.json`` beside the overview.

    adopt: whether they were made with ``--adopt``.
    """

    fleet: str
    taken_at: datetime
    seconds: float
    clusters: tuple[PlannedCluster, ...]
    adopt: bool = False


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
    def good(self) -> bool:
        """Whether nothing is left that another apply of these plans would do."""
        return self in (
            AppliedStatus.DONE,
            AppliedStatus.NOTHING,
            AppliedStatus.SKIPPED,
            AppliedStatus.DENIED,
        )


@dataclass(frozen=True, slots=True)
class AppliedCluster:
    """What was done to one cluster.

    wave: counted from 1; 0 where there was nothing to begin. run_id: of the run in the cluster's history.
    done: operations that ended well, of ``operations``. message: why it is not done, or what else should be
    known.
    """

    name: str
    wave: int
    status: AppliedStatus
    run_id: str | None = None
    done: int = 0
    operations: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class FleetApply:
    """What was done to a fleet.

    stopped: why no more clusters were begun; None where all were. interrupted: whether by Ctrl-C.
    """

    fleet: str
    seconds: float
    clusters: tuple[AppliedCluster, ...] = field(default=())
    stopped: str | None = None
    interrupted: bool = False


def overview_document(plans: FleetPlan) -> dict[str, Any]:
    """As overview.json has it."""
    return {
        "format_version": FORMAT_VERSION,
        "fleet": plans.fleet,
        "taken_at": timestamp(plans.taken_at),
        "seconds": plans.seconds,
        "adopt": plans.adopt,
        "clusters": [
            {
                "name": cluster.name,
                "plan_id": cluster.plan_id,
                "summary": summary_document(cluster.summary),
                "changes": cluster.changes,
                "exit": cluster.exit.value,
                "error": cluster.error,
            }
            for cluster in plans.clusters
        ],
    }


def read_overview(text: str, where: str) -> FleetPlan:
    """The plans of an overview.json, whose path is ``where``.

    Raises KdeclareError (bad-overview) for another format version, and for what is no overview.
    """
    data = _DOCUMENT.read(text, where)
    try:
        return FleetPlan(
            _of(str, data["fleet"]),
            datetime.fromisoformat(data["taken_at"]),
            float(data["seconds"]),
            tuple(_planned(cluster) for cluster in data["clusters"]),
            _of(bool, data.get("adopt", False)),
        )
    except (ValueError, KeyError, TypeError):
        raise _DOCUMENT.unreadable(where) from None


def _planned(data: Mapping[str, Any]) -> PlannedCluster:
    return PlannedCluster(
        _of(str, data["name"]),
        _of(str | None, data["plan_id"]),
        Summary(**{name: _of(int, data["summary"][name]) for name in SUMMARY_FIELDS}),
        _of(int, data["changes"]),
        PlanExit(data["exit"]),
        _of(str | None, data["error"]),
    )


def _of(type_: Any, value: Any) -> Any:
    if not isinstance(value, type_):
        raise TypeError(value)
    return value
