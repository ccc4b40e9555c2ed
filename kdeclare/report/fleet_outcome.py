"""How the commands about fleets exit: one place, as text and JSON say the same."""

from collections.abc import Collection

from kdeclare.core.exits import ExitCode
from kdeclare.fleet.finding import TO_BE_APPLIED, FindingKind
from kdeclare.fleet.overview import AppliedStatus, FleetApply, FleetPlan, PlanExit
from kdeclare.fleet.snapshots import SnapshotRecord
from kdeclare.fleet.summary import AuditSummary


def snapshot_exit(record: SnapshotRecord) -> ExitCode:
    """1 where a cluster could not be read, or not all of it."""
    return ExitCode.ERROR if record.incomplete else ExitCode.OK


def audit_exit(
    summary: AuditSummary, *, detailed_exitcode: bool = False, fail_on: Collection[FindingKind] = ()
) -> ExitCode:
    """1 where a cluster could not be read: what it hides is not known.

    Else 2 with ``detailed_exitcode`` where an apply would change something, and where anything was found
    that is in ``fail_on``.
    """
    if summary.incomplete:
        return ExitCode.ERROR
    watched = {*fail_on, *(TO_BE_APPLIED if detailed_exitcode else ())}
    return ExitCode.CHANGES if any(summary.found.get(kind) for kind in watched) else ExitCode.OK


def plans_exit(plans: FleetPlan, *, detailed_exitcode: bool = False) -> ExitCode:
    """As ``kdeclare plan`` of the cluster that is worst off."""
    exits = {cluster.exit for cluster in plans.clusters}
    if PlanExit.ERROR in exits:
        return ExitCode.ERROR
    if PlanExit.DENIED in exits:
        return ExitCode.DENIED
    return ExitCode.CHANGES if detailed_exitcode and PlanExit.CHANGES in exits else ExitCode.OK


def apply_exit(run: FleetApply) -> ExitCode:
    """0 where all is done; 3 where only what was denied is not; 130 after a Ctrl-C.

    Where nothing could be done: 4 if all plans are stale, 6 if all states are locked, else 1.
    5 where something is left to do.
    """
    if run.interrupted:
        return ExitCode.INTERRUPTED
    statuses = {cluster.status for cluster in run.clusters}
    if all(status.good for status in statuses):
        return ExitCode.DENIED if AppliedStatus.DENIED in statuses else ExitCode.OK
    tried = statuses - {AppliedStatus.NOTHING, AppliedStatus.NOT_BEGUN, AppliedStatus.SKIPPED}
    if tried - _NOTHING_DONE.keys():
        return ExitCode.PARTIAL
    codes = {_NOTHING_DONE[status] for status in tried}
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


_NOTHING_DONE = {
    AppliedStatus.FAILED: ExitCode.ERROR,
    AppliedStatus.STALE: ExitCode.STALE,
    AppliedStatus.LOCKED: ExitCode.LOCKED,
}
"""How a cluster ended in which nothing was done, and how the command exits if all have ended so."""
