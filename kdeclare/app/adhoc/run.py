"""Run what a command asks for ad hoc: plan it, ask, run and verify. Nothing comes to be owned through it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from kdeclare.app.adhoc.owners import owner_notices, owners_of
from kdeclare.app.adhoc.results import result_of, result_without_plan
from kdeclare.app.apply import How, confirmed
from kdeclare.app.authoring.write_back import prepare
from kdeclare.app.plan import complete_options
from kdeclare.app.policies import InForce, policies_in_force
from kdeclare.app.recovery import recover_locked
from kdeclare.app.secrets import seal_secrets
from kdeclare.app.workspace import Workspace
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, info, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import RunResult, Status
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.engine.executor.expectations import Verified, verify
from kdeclare.engine.planning.adhoc import plan_apart
from kdeclare.engine.planning.request import PlanRequest, Scope
from kdeclare.report.adhoc import DEEDS, AdhocResult, AdhocWords, Summary
from kdeclare.report.manifest.manifest_diff import manifest_diff


@dataclass(frozen=True, slots=True)
class AdhocRequest:
    """What a command asks for, as far as it is possible.

    failed: what is not, by resource. left_out: resources of which nothing is to be done, with the reason.
    diagnostics: about what is left, of resources. All resources are named once, over all four.
    """

    desired: tuple[Desired, ...] = ()
    removals: frozenset[ResourceId] = frozenset()
    failed: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def is_left(self) -> bool:
        """Whether there is anything that has not failed."""
        ids = {str(desired.id) for desired in self.desired} | {str(id_) for id_ in self.removals}
        return not ids <= self.failed.keys()


def _summarize_nothing(resource: ResourceId, live: LiveState) -> Summary | None:
    return None


@dataclass(frozen=True, slots=True)
class AdhocCommand:
    """One command of a provider.

    ask: makes of the command line what is asked for, given what the systems have. Raises KdeclareError and
        Fault.
    summarize: returns what is to be said of a resource as it is afterwards, if there is anything.
    words: what its provider calls what happens.
    """

    ask: Callable[[Connections], AdhocRequest]
    summarize: Callable[[ResourceId, LiveState], Summary | None] = _summarize_nothing
    words: AdhocWords = field(default_factory=AdhocWords)


@dataclass(frozen=True, slots=True)
class AdhocOptions:
    """What was chosen for one command line.

    scope: guards, preflight, and what was chosen about single systems. verify_s: how long to wait until what
    was done is seen. write: put into the manifests what was done. tell: shows, before anybody is asked, what
    would be written.
    """

    scope: Scope = field(default_factory=Scope)
    verify_s: float = 30.0
    write: bool = False
    tell: Callable[[str], None] = lambda _: None


def run_adhoc(
    workspace: Workspace, command: AdhocCommand, options: AdhocOptions, how: How
) -> AdhocResult | None:
    """Plan, ask, run and verify; None when the person said no. Raises KdeclareError."""
    with (
        policies_in_force(workspace, overrides=how.overrides) as in_force,
        workspace.connected() as connections,
        workspace.store.lock(how.command),
    ):
        notices = (
            *in_force.diagnostics,
            *recover_locked(workspace, connections, how.command, progress=how.progress),
        )
        wanted = command.ask(connections)
        if not wanted.is_left:
            return result_without_plan(wanted.failed, wanted.left_out)
        desired, secrets = seal_secrets(
            workspace, wanted.desired, workspace.store.read(), connections, how.progress
        )
        owners = owners_of(workspace)
        wanted = replace(wanted, desired=owners.labelled(desired))
        scope = replace(options.scope, protected=owners.protected(wanted.removals))
        request = _request(workspace, wanted, scope, in_force, how)
        apart = plan_apart(request, connections, secrets, how.progress)
        wanted = replace(wanted, failed={**wanted.failed, **apart.failed})
        if not wanted.is_left:
            return result_without_plan(wanted.failed, wanted.left_out)
        notices = (*notices, *_failures(wanted.failed))
        if options.write:
            prepared = prepare(workspace, apart.plan.changes)
            options.tell(manifest_diff(prepared.files))
            notices = (*notices, *prepared.notices, *_nothing_to_write(apart.plan))
        else:
            notices = (*notices, *owner_notices(workspace, apart.plan, owners))
        run = confirmed(workspace, connections, apart.plan, secrets, how, in_force, notices)
        if run is None:
            return None
        verified, unseen = _verify(connections, run, options.verify_s, command.words.look_hint)
        asked = [desired.id for desired in wanted.desired] + list(wanted.removals)
        result = result_of(run, asked, wanted.failed, wanted.left_out, verified, command.summarize)
        result = replace(result, notices=unseen, beforehand=notices, words=command.words)
        return _write_manifests(workspace, result) if options.write else result


def _request(
    workspace: Workspace, wanted: AdhocRequest, scope: Scope, in_force: InForce, how: How
) -> PlanRequest:
    project = workspace.project
    scope = replace(
        scope,
        complete=False,
        by_hand=True,
        removals=wanted.removals,
        overrides=how.overrides,
        options=complete_options(scope.options, project),
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


def _verify(
    connections: Connections, run: RunResult, seconds: float, hint: str
) -> tuple[Verified | None, tuple[Diagnostic, ...]]:
    """What was seen, and why nothing was. Moves that go on count: where they are heading is expected."""
    done = [op for op in run.plan.operations if (r := run.results.get(op.id)) and r.is_good]
    if run.interrupted or not done:
        return None, ()
    try:
        return verify(connections, done, SystemClock(), seconds), ()
    except Fault as fault:
        return None, (_unverified(str(fault), hint),)
    except KeyboardInterrupt:
        return None, (_unverified("interrupted", hint),)


def _unverified(why: str, hint: str) -> Diagnostic:
    return warning(
        "not-verified",
        "What was done was not seen",
        f"Metadata could not be read afterwards: {why}.",
        hint=hint,
    )


def _write_manifests(workspace: Workspace, result: AdhocResult) -> AdhocResult:
    """Put into the manifests what was done. That this failed takes nothing back in the cluster."""
    done = {item.resource for item in result.items if item.outcome in DEEDS}
    changes = result.run.plan.changes if result.run else ()
    try:
        prepared = prepare(workspace, [change for change in changes if str(change.id) in done])
        prepared.write()
    except KdeclareError as problem:
        return replace(result, notices=(*result.notices, *problem.diagnostics))
    written = tuple(edit.file for edit in prepared.files)
    return replace(result, written=written, notices=(*result.notices, *_behind(result, done)))


def _behind(result: AdhocResult, written: Collection[str]) -> Iterator[Diagnostic]:
    """What was done of a resource of which something else failed is not in its manifest."""
    run = result.run
    for op in run.plan.operations if run else ():
        ended = run.results.get(op.id) if run else None
        if ended and ended.status is Status.DONE and str(op.resource) not in written:
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
