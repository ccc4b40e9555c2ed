"""What the commands by hand have in common: plan apart, ask, run, verify; nothing is owned through them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kdeclare.app.apply import How, confirmed
from kdeclare.app.by_hand.items import nothing_to_plan, viewed
from kdeclare.app.by_hand.owners import owner_notices, owners_of
from kdeclare.app.by_hand.wanted import Wanted
from kdeclare.app.connections import connections_to
from kdeclare.app.policies import InForce, policies_in_force
from kdeclare.app.recovering import recover_locked
from kdeclare.app.scope import Scope
from kdeclare.app.secrets import seal_secrets
from kdeclare.app.workspace import Workspace
from kdeclare.app.write_back import prepare
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, info, warning
from kdeclare.core.faults import Fault
from kdeclare.core.plan import Plan
from kdeclare.core.run import RunResult, Status
from kdeclare.engine.executor.verifying import Verified, verify
from kdeclare.engine.planning.by_hand import plan_apart
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.providers.kafka.plan_options import with_pace
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.report.by_hand_views import DEEDS, HandView
from kdeclare.report.manifest_diff import manifest_diff


@dataclass(frozen=True, slots=True)
class Manners:
    """How a command by hand goes about it.

    scope: guards, preflight, moves of others. verify_s: how long to wait until what was done is seen.
    throttle: of moves between brokers, in bytes a second. write: put into the manifests what was done.
    tell: shows, before anybody is asked, what would be written.
    """

    scope: Scope = field(default_factory=Scope)
    verify_s: float = 30.0
    throttle: int | None = None
    write: bool = False
    tell: Callable[[str], None] = lambda _: None


Ask = Callable[[Cluster], Wanted]
"""Makes of the command line what is wanted, given what the cluster has."""


def by_hand(workspace: Workspace, ask: Ask, manners: Manners, how: How) -> HandView | None:
    """Plan, ask, run and verify; None when the person said no. Raises KdeclareError."""
    with (
        policies_in_force(workspace, overrides=how.overrides) as in_force,
        workspace.cluster() as cluster,
        workspace.store.lock(how.command),
    ):
        notices = (
            *in_force.diagnostics,
            *recover_locked(workspace, cluster, how.command, progress=how.progress),
        )
        wanted = ask(cluster)
        if not wanted.is_left:
            return nothing_to_plan(wanted)
        desired, secrets = seal_secrets(
            workspace, wanted.desired, workspace.store.read(), cluster, how.progress
        )
        owners = owners_of(workspace)
        wanted = replace(wanted, desired=owners.labelled(desired))
        manners = replace(manners, scope=replace(manners.scope, protected=owners.protected(wanted.removals)))
        request = _request(workspace, wanted, manners, in_force, how)
        apart = plan_apart(request, connections_to(cluster), secrets, how.progress)
        wanted = replace(wanted, failed={**wanted.failed, **apart.failed})
        if not wanted.is_left:
            return nothing_to_plan(wanted)
        notices = (*notices, *_failures(wanted.failed))
        if manners.write:
            prepared = prepare(workspace, apart.plan.changes)
            manners.tell(manifest_diff(prepared.files))
            notices = (*notices, *prepared.notices, *_nothing_to_write(apart.plan))
        else:
            notices = (*notices, *owner_notices(workspace, apart.plan, owners))
        run = confirmed(workspace, cluster, apart.plan, secrets, how, in_force, notices)
        if run is None:
            return None
        verified, unseen = _verified(cluster, run, manners)
        view = replace(viewed(run, wanted, verified), notices=unseen, beforehand=notices)
        return _written(workspace, view) if manners.write else view


def _request(
    workspace: Workspace, wanted: Wanted, manners: Manners, in_force: InForce, how: How
) -> PlanRequest:
    project = workspace.project
    pace = Pace(throttle=manners.throttle).over(project.environment.pace)
    scope = replace(
        manners.scope,
        complete=False,
        by_hand=True,
        removals=wanted.removals,
        overrides=how.overrides,
        options=with_pace(manners.scope.options, pace),
    )
    return PlanRequest(
        project=project.name,
        env=project.environment.name,
        cluster_name=workspace.cluster_name,
        desired=wanted.desired,
        state=workspace.store.read(),
        scope=scope,
        diagnostics=wanted.diagnostics,
        judge=in_force.judge,
        names=project.scope,
    )


def _failures(failed: Mapping[str, Sequence[Diagnostic]]) -> tuple[Diagnostic, ...]:
    return tuple(problem for problems in failed.values() for problem in problems)


def _verified(
    cluster: Cluster, run: RunResult, manners: Manners
) -> tuple[Verified | None, tuple[Diagnostic, ...]]:
    """What was seen, and why nothing was. Moves that go on count: where they are heading is expected."""
    done = [op for op in run.plan.operations if (r := run.results.get(op.id)) and r.is_good]
    if run.interrupted or not done:
        return None, ()
    try:
        return verify(connections_to(cluster), done, SystemClock(), manners.verify_s), ()
    except Fault as fault:
        return None, (_unverified(str(fault)),)
    except KeyboardInterrupt:
        return None, (_unverified("interrupted"),)


def _unverified(why: str) -> Diagnostic:
    return warning(
        "not-verified",
        "What was done was not seen",
        f"Metadata could not be read afterwards: {why}.",
        hint="'kdeclare topic describe' shows what is there.",
    )


def _written(workspace: Workspace, view: HandView) -> HandView:
    """Put into the manifests what was done. That this failed takes nothing back in the cluster."""
    done = {item.resource for item in view.items if item.came in DEEDS}
    changes = view.run.plan.changes if view.run else ()
    try:
        prepared = prepare(workspace, [change for change in changes if str(change.id) in done])
        prepared.write()
    except KdeclareError as problem:
        return replace(view, notices=(*view.notices, *problem.diagnostics))
    written = tuple(edit.file for edit in prepared.files)
    return replace(view, written=written, notices=(*view.notices, *_behind(view, done)))


def _behind(view: HandView, written: Collection[str]) -> Iterator[Diagnostic]:
    """What was done of a resource of which something else failed is not in its manifest."""
    run = view.run
    for op in run.plan.operations if run else ():
        result = run.results.get(op.id) if run else None
        if result and result.status is Status.DONE and str(op.resource) not in written:
            yield error(
                "manifest-behind",
                "A manifest was not written",
                f"{op.resource}: {op.verb} was done, something else was not, and its manifest is as before.",
                hint="'kdeclare plan' shows the difference; write it by hand, or give the command again.",
                resource=str(op.resource),
            )


def _nothing_to_write(plan: Plan) -> tuple[Diagnostic, ...]:
    if plan.has_changes:
        return ()
    detail = "The cluster is as wanted already, so nothing is changed, and nothing is written."
    hint = "Where a manifest says something else, change it by hand: 'kdeclare plan' shows the difference."
    return (info("nothing-to-write", "No manifest is written", detail, hint=hint),)
