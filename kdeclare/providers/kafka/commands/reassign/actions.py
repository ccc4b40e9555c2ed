"""What Kafka's kafka-reassign-partitions tool does, with a plan, a journal and a way back."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.app.apply import ApplyOptions, confirm_and_apply, prune_denied_operations
from kdeclare.app.plan import complete_options
from kdeclare.app.policies import ActivePolicies, open_active_policies
from kdeclare.app.recovery import recover_under_lock
from kdeclare.app.secrets import ProjectSecrets
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, Severity, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import PlanOptions
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.providers.kafka.collector import KafkaSelection, collect_replica_dirs, observe
from kdeclare.providers.kafka.commands.reassign.assignments_file import ANY_LOG_DIR, Assignment
from kdeclare.providers.kafka.commands.reassign.checks import (
    Out,
    Told,
    check_names,
    check_places,
    check_topics,
    clear,
    existing_moves,
    foreign,
    limits,
    settle_and_clear,
)
from kdeclare.providers.kafka.commands.reassign.plans import (
    Execution,
    Replica,
    cancel_plan,
    execution_plan,
    not_to_move,
)
from kdeclare.providers.kafka.commands.reassign.tool_output import (
    NO_MOVES,
    DirState,
    VerifyState,
    cancelled,
    current_and_proposed,
    dirs_not_started,
    dirs_started,
    dirs_text,
    list_text,
    rollback_hint,
    started,
    verify_text,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.plan_options import KEEP_THROTTLES
from kdeclare.providers.kafka.port import Cluster, LogDir
from kdeclare.providers.kafka.reassignment.operations.arguments import RelocateArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import (
    CancelMoves,
    RelocateReplicas,
    parse_replica,
)
from kdeclare.providers.kafka.reassignment.pace import Pace, get_default_pace
from kdeclare.providers.kafka.reassignment.proposal import compute_proposal, warn_unusable_brokers

_CANCEL, _RELOCATE = CancelMoves(), RelocateReplicas()
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class ReassignResult:
    """What came of --execute or --cancel.

    run: None when the person said no. problems: what was not done, in the tool's words.
    """

    run: ApplyResult | None
    problems: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class ReassignOptions:
    """Options of --execute; see `plans.Execution`.

    start_timeout_s: how long to wait until moves between log directories have begun.
    """

    additional: bool = False
    resize: bool = True
    throttle: int | None = None
    dirs_throttle: int | None = None
    start_timeout_s: float = 10.0


def list_moves(workspace: Workspace) -> str:
    """The answer of --list. Raises KdeclareError."""
    with workspace.open_connections() as connections:
        cluster = connections.get(KafkaConnection).cluster
        return list_text(cluster.moves())


def generate(
    workspace: Workspace, topics: Collection[str], brokers: Sequence[int], *, rack_aware: bool
) -> tuple[str, tuple[Diagnostic, ...]]:
    """The answer of --generate, and what should be known of it. Raises KdeclareError."""
    with workspace.open_connections() as connections:
        cluster = connections.get(KafkaConnection).cluster
        live = observe(cluster, KafkaSelection(frozenset(topics)), all_topics=True)
        check_topics(topics, live)
        placed = compute_proposal(live, topics, brokers, rack_aware=rack_aware)
        there = cluster.log_dirs(sorted(topics)) if topics else {}
        current = _current(placed, live, there)
        text = current_and_proposed(current, [Assignment(p, r) for p, r in placed.items()])
        return text, warn_unusable_brokers(live, brokers)


def execute(
    workspace: Workspace,
    assignments: Sequence[Assignment],
    options: ReassignOptions,
    how: ApplyOptions,
    out: Out,
) -> ReassignResult:
    """Begin to move, and wait for nothing but log directories. Raises KdeclareError."""
    with (
        open_active_policies(workspace, overrides=how.overrides) as in_force,
        workspace.open_connections() as connections,
        workspace.store.lock(how.command),
    ):
        cluster = connections.get(KafkaConnection).cluster
        notices = (
            *in_force.diagnostics,
            *recover_under_lock(workspace, connections, how.command, progress=how.progress),
        )
        if not options.additional and cluster.moves():
            raise existing_moves()
        live, there = _seen(cluster, assignments)
        check_places(assignments, _directories(assignments), live, there)
        check_names(_topics(assignments), workspace.project.scope)
        out(rollback_hint(_current([a.partition for a in assignments], live, there)))
        wanted = _execution(workspace, assignments, options)
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        request = _request(workspace, in_force, how)
        plan = execution_plan(request, wanted, live, connections, secrets, how.progress)
        run = confirm_and_apply(workspace, connections, plan, secrets, how, in_force, notices)
        if run is None:
            return ReassignResult(None)
        moved = _begun(run, wanted, cluster)
        out(limits(workspace, wanted))
        if moved:
            out(started(moved))
        return ReassignResult(run, (*_not_moved(run), *_await_dirs(cluster, wanted, moved, options, out)))


def verify(
    workspace: Workspace,
    assignments: Sequence[Assignment],
    what: str,
    out: Out,
    tell: Told,
    *,
    keep_throttles: bool,
) -> None:
    """Say how far moves are; once they are over, take away what kdeclare has throttled them with.

    what: the command, for other people's messages. Raises KdeclareError.
    """
    with workspace.open_connections() as connections:
        cluster = connections.get(KafkaConnection).cluster
        going_on = cluster.moves()
        live = observe(cluster, KafkaSelection(_topics(assignments)))
        out(verify_text(_verified(a, live) for a in assignments))
        directories = _directories(assignments)
        names = sorted({partition.topic for partition, _ in directories})
        states = _dir_states(directories, cluster.log_dirs(names)) if names else []
        out(dirs_text(states))
        if going_on or keep_throttles or any(state.moving for state in states):
            return
        settle_and_clear(workspace, connections, what, out, tell)
        tell(foreign(workspace, cluster, _topics(assignments)))


def cancel(
    workspace: Workspace,
    assignments: Sequence[Assignment],
    how: ApplyOptions,
    out: Out,
    tell: Told,
    *,
    keep_throttles: bool,
) -> ReassignResult:
    """Stop those of the moves that are active, and take their throttles away. Raises KdeclareError."""
    with (
        open_active_policies(workspace, overrides=how.overrides) as in_force,
        workspace.open_connections() as connections,
        workspace.store.lock(how.command),
    ):
        cluster = connections.get(KafkaConnection).cluster
        left = recover_under_lock(
            workspace, connections, how.command, options=KEEP_THROTTLES, progress=how.progress
        )
        notices = (*in_force.diagnostics, *left)
        live, _ = _seen(cluster, assignments)
        check_names(_topics(assignments), workspace.project.scope)
        directories = _directories(assignments)
        request = _request(workspace, in_force, how)
        plan = cancel_plan(request, live, [a.partition for a in assignments], directories)
        plan = prune_denied_operations(plan, connections, request.state, in_force, how)
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        run: ApplyResult | None = ApplyResult(None, plan, {})
        if plan.operations:
            run = confirm_and_apply(
                workspace, connections, plan, secrets, how, in_force, notices, clean_up=False
            )
        else:
            tell(notices)  # there is nothing to ask about
        if run is None:
            return ReassignResult(None)
        denials = _denials(run)
        problems = _failed(run, "Error cancelling partition reassignments", denials)
        stopped = _stopped(run, cluster)
        if stopped or not problems:
            out(cancelled(stopped))
        back = _sent_back(run, live)
        if back or not denials:
            out(dirs_started(back) if back else NO_MOVES)
        if not keep_throttles:
            clear(workspace, connections, how.command, out, tell)
            if not cluster.moves():
                tell(foreign(workspace, cluster, _topics(assignments)))
        return ReassignResult(run, problems)


def _request(workspace: Workspace, in_force: ActivePolicies, how: ApplyOptions) -> PlanRequest:
    project = workspace.project
    return PlanRequest(
        project=project.name,
        env=project.environment.name,
        cluster_name=workspace.cluster_name,
        desired=(),
        state=workspace.store.read(),
        scope=PlanScope(overrides=how.overrides),
        judge=in_force.judge,
    )


def _execution(
    workspace: Workspace, assignments: Sequence[Assignment], options: ReassignOptions
) -> Execution:
    """Of the environment's pace only the throttle holds: nobody waits here for one batch after the other."""
    chosen = PlanOptions(Pace(throttle=options.throttle))
    pace = get_default_pace(complete_options(chosen, workspace.project))
    return Execution(
        targets={a.partition: a.replicas for a in assignments},
        directories=_directories(assignments),
        additional=options.additional,
        resize=options.resize,
        throttle=pace.throttle,
        dirs_throttle=options.dirs_throttle,
    )


def _seen(
    cluster: Cluster, assignments: Sequence[Assignment]
) -> tuple[KafkaState, Mapping[int, Sequence[LogDir]]]:
    """The topics with their moves, and the log directories of all brokers with their replicas."""
    names = _topics(assignments)
    live = observe(cluster, KafkaSelection(names))
    there = cluster.log_dirs(sorted(names))
    return replace(live, dirs=collect_replica_dirs(there)), there


def _topics(assignments: Iterable[Assignment]) -> frozenset[str]:
    return frozenset(a.partition.topic for a in assignments)


def _directories(assignments: Iterable[Assignment]) -> dict[Replica, str]:
    return {
        (a.partition, broker): path
        for a in assignments
        for broker, path in zip(a.replicas, a.log_dirs or (), strict=False)
        if path != ANY_LOG_DIR
    }


def _current(
    partitions: Iterable[TopicPartition], live: KafkaState, there: Mapping[int, Sequence[LogDir]]
) -> list[Assignment]:
    """Where partitions are, those in flight as they were before: that is what a rollback needs."""
    dirs = collect_replica_dirs(there)
    found = []
    for partition in partitions:
        move = live.moves.get(partition)
        replicas = move.origin if move else live.replicas(partition) or ()
        known = (dirs.get((partition, broker)) for broker in replicas)
        paths = tuple((d.path if d else None) or ANY_LOG_DIR for d in known)
        found.append(Assignment(partition, replicas, paths))
    return found


def _begun(run: ApplyResult, wanted: Execution, cluster: Cluster) -> list[TopicPartition]:
    """What is where it is to be, or on its way there. Of a refused operation other partitions may move."""
    left = set(not_to_move(run.plan))
    doubtful = {
        TopicPartition.parse(name)
        for op in run.plan.operations
        if get_operation_type(op).goes_on and _status(run, op) not in (Status.DONE, Status.STARTED)
        for name in get_targets(op)
    }
    if doubtful:
        live = observe(cluster, KafkaSelection(frozenset(p.topic for p in doubtful)))
        left |= {p for p in doubtful if live.replicas(p) != wanted.targets[p]}
    return [p for p in sorted(wanted.targets) if p not in left]


def _status(run: ApplyResult, op: Operation) -> Status | None:
    result = run.results.get(op.id)
    return result.status if result else None


def _not_moved(run: ApplyResult) -> tuple[Diagnostic, ...]:
    """What was denied beforehand, and what was refused."""
    return _failed(run, "Error reassigning partition(s)", _denials(run))


def _denials(run: ApplyResult) -> list[str]:
    denials = [d.detail for d in run.plan.diagnostics if d.severity is Severity.DENIED]
    return denials + [f"{v.topic or v.resource}: {v.message}" for v in run.plan.verdicts if v.is_denial]


def _failed(run: ApplyResult, summary: str, more: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    good = (Status.DONE, Status.STARTED, Status.SKIPPED)
    bad = [r.message or f"{r.id}: {r.status}" for r in run.results.values() if r.status not in good]
    lines = [*more, *bad]
    return (error("not-reassigned", summary, "\n".join(lines)),) if lines else ()


def _await_dirs(
    cluster: Cluster, wanted: Execution, moved: Collection[TopicPartition], options: ReassignOptions, out: Out
) -> tuple[Diagnostic, ...]:
    """Watch until the replicas are in their log directories or on their way, as Kafka's tool does."""
    due = {replica: path for replica, path in wanted.directories.items() if replica[0] in moved}
    if not due:
        return ()
    names = sorted({partition.topic for partition, _ in due})
    deadline = time.monotonic() + options.start_timeout_s
    while True:
        states = _dir_states(due, cluster.log_dirs(names))
        late = [s for s in states if s.dirs is None or s.dirs.final_path != s.target]
        if not late or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    out(dirs_started(state for state in states if state not in late))
    if not late:
        return ()
    hint = "The brokers put them there once they have them, unless they are restarted before."
    return (error("dirs-not-started", "Not in their log directories yet", dirs_not_started(late), hint=hint),)


def _dir_states(directories: Mapping[Replica, str], there: Mapping[int, Sequence[LogDir]]) -> list[DirState]:
    dirs = collect_replica_dirs(there)
    return [
        DirState(broker, partition, path, dirs.get((partition, broker)), silent=broker not in there)
        for (partition, broker), path in sorted(directories.items())
    ]


def _verified(assignment: Assignment, live: KafkaState) -> VerifyState:
    partition = assignment.partition
    return VerifyState(partition, assignment.replicas, live.replicas(partition), partition in live.moves)


def _stopped(run: ApplyResult, cluster: Cluster) -> list[TopicPartition]:
    """What was cancelled. Of a request that was refused for one partition, others are."""
    ops = [op for op in run.plan.operations if op.verb == _CANCEL.name]
    asked = [TopicPartition.parse(name) for op in ops for name in get_targets(op)]
    if all(_status(run, op) is Status.DONE for op in ops):
        return asked
    still = cluster.moves(sorted({partition.topic for partition in asked}))
    return [partition for partition in asked if partition not in still]


def _sent_back(run: ApplyResult, live: KafkaState) -> list[DirState]:
    return [
        DirState(broker, partition, path, live.dirs.get((partition, broker)))
        for op in run.plan.operations
        if op.verb == _RELOCATE.name and _status(run, op) is Status.DONE
        for (partition, broker), path in (
            (parse_replica(n), path) for n, path in get_arguments(op, RelocateArgs).replicas.items()
        )
    ]
