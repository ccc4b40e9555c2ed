"""The actions of Kafka's kafka-reassign-partitions tool, with a plan, a journal and a rollback."""

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
from kdeclare.providers.kafka.commands.reassign.assignments_file import ANY_LOG_DIR, PartitionAssignment
from kdeclare.providers.kafka.commands.reassign.checks import (
    DiagnosticsWriter,
    TextWriter,
    build_existing_moves_error,
    check_foreign_throttles,
    clear_throttles,
    render_throttle_limits,
    settle_and_clear_throttles,
    validate_scope,
    validate_targets,
    validate_topics,
)
from kdeclare.providers.kafka.commands.reassign.plans import (
    ExecutionRequest,
    Replica,
    build_cancel_plan,
    build_execution_plan,
    find_unmoved_partitions,
)
from kdeclare.providers.kafka.commands.reassign.tool_output import (
    NO_MOVES,
    DirState,
    VerifyState,
    render_cancelled,
    render_dir_states,
    render_dirs_not_started,
    render_dirs_started,
    render_moves,
    render_proposal,
    render_rollback_hint,
    render_started,
    render_verification,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.plan_options import KEEP_THROTTLES
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.operations.arguments import RelocateArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import (
    CancelMoves,
    RelocateReplicas,
    parse_replica,
)
from kdeclare.providers.kafka.reassignment.pace import Pace, get_default_pace
from kdeclare.providers.kafka.reassignment.proposal import compute_proposal, warn_unusable_brokers
from kdeclare.providers.kafka.request_values import LogDir

_CANCEL_TYPE, _RELOCATE_TYPE = CancelMoves(), RelocateReplicas()
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class ReassignResult:
    """The result of ``kdeclare reassign`` with --execute or --cancel.

    run: the run, or None if the user declined.
    problems: the failures, in the words of Kafka's tool.
    """

    run: ApplyResult | None
    problems: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class ReassignOptions:
    """The options of --execute (see `plans.ExecutionRequest`).

    start_timeout_s: how long to wait until moves between log directories have started, in seconds.
    """

    additional: bool = False
    resize: bool = True
    throttle: int | None = None
    dirs_throttle: int | None = None
    start_timeout_s: float = 10.0


def list_moves(workspace: Workspace) -> str:
    """Return the output of ``kdeclare reassign --list``. Raises KdeclareError."""
    with workspace.open_connections() as connections:
        cluster = connections.get(KafkaConnection).cluster
        return render_moves(cluster.moves())


def generate(
    workspace: Workspace, topics: Collection[str], brokers: Sequence[int], *, rack_aware: bool
) -> tuple[str, tuple[Diagnostic, ...]]:
    """Return the output of ``kdeclare reassign --generate``, and warnings about unusable brokers.

    Raises KdeclareError.
    """
    with workspace.open_connections() as connections:
        cluster = connections.get(KafkaConnection).cluster
        live = observe(cluster, KafkaSelection(frozenset(topics)), all_topics=True)
        validate_topics(topics, live)
        proposed = compute_proposal(live, topics, brokers, rack_aware=rack_aware)
        log_dirs = cluster.log_dirs(sorted(topics)) if topics else {}
        current_assignments = _build_current_assignments(proposed, live, log_dirs)
        text = render_proposal(current_assignments, [PartitionAssignment(p, r) for p, r in proposed.items()])
        return text, warn_unusable_brokers(live, brokers)


def execute(
    workspace: Workspace,
    assignments: Sequence[PartitionAssignment],
    options: ReassignOptions,
    apply_options: ApplyOptions,
    write_text: TextWriter,
) -> ReassignResult:
    """Start the moves of ``kdeclare reassign --execute``. Raises KdeclareError.

    Does not wait until the moves have finished. Waits only until moves between log directories have started.
    """
    with (
        open_active_policies(workspace, overrides=apply_options.overrides) as in_force,
        workspace.open_connections() as connections,
        workspace.store.lock(apply_options.command, apply_options.progress),
    ):
        cluster = connections.get(KafkaConnection).cluster
        notices = (
            *in_force.diagnostics,
            *recover_under_lock(
                workspace, connections, apply_options.command, progress=apply_options.progress
            ),
        )
        if not options.additional and cluster.moves():
            raise build_existing_moves_error()
        live, log_dirs = _observe_assignments(cluster, assignments)
        validate_targets(assignments, _list_directories(assignments), live, log_dirs)
        validate_scope(_list_topics(assignments), workspace.project.scope)
        write_text(
            render_rollback_hint(
                _build_current_assignments([a.partition for a in assignments], live, log_dirs)
            )
        )
        execution_request = _build_execution_request(workspace, assignments, options)
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        request = _build_request(workspace, in_force, apply_options)
        plan = build_execution_plan(
            request, execution_request, live, connections, secrets, apply_options.progress
        )
        run = confirm_and_apply(workspace, connections, plan, secrets, apply_options, in_force, notices)
        if run is None:
            return ReassignResult(None)
        started_partitions = _find_started_partitions(run, execution_request, cluster)
        write_text(render_throttle_limits(workspace, execution_request))
        if started_partitions:
            write_text(render_started(started_partitions))
        return ReassignResult(
            run,
            (
                *_report_not_moved(run),
                *_await_dirs(cluster, execution_request, started_partitions, options, write_text),
            ),
        )


def verify(
    workspace: Workspace,
    assignments: Sequence[PartitionAssignment],
    command_name: str,
    write_text: TextWriter,
    report: DiagnosticsWriter,
    *,
    keep_throttles: bool,
) -> None:
    """Print the progress of moves. If all moves have finished, remove the throttles that kdeclare set.

    command_name: the command that other users see as the holder of the lock. Raises KdeclareError.
    """
    with workspace.open_connections() as connections:
        cluster = connections.get(KafkaConnection).cluster
        ongoing_moves = cluster.moves()
        live = observe(cluster, KafkaSelection(_list_topics(assignments)))
        write_text(render_verification(_build_verify_state(a, live) for a in assignments))
        directories = _list_directories(assignments)
        names = sorted({partition.topic for partition, _ in directories})
        states = _build_dir_states(directories, cluster.log_dirs(names)) if names else []
        write_text(render_dir_states(states))
        if ongoing_moves or keep_throttles or any(state.moving for state in states):
            return
        settle_and_clear_throttles(workspace, connections, command_name, write_text, report)
        report(check_foreign_throttles(workspace, cluster, _list_topics(assignments)))


def cancel(
    workspace: Workspace,
    assignments: Sequence[PartitionAssignment],
    apply_options: ApplyOptions,
    write_text: TextWriter,
    report: DiagnosticsWriter,
    *,
    keep_throttles: bool,
) -> ReassignResult:
    """Cancel the given moves if they are in progress, and remove their throttles. Raises KdeclareError."""
    with (
        open_active_policies(workspace, overrides=apply_options.overrides) as in_force,
        workspace.open_connections() as connections,
        workspace.store.lock(apply_options.command, apply_options.progress),
    ):
        cluster = connections.get(KafkaConnection).cluster
        recovery_diagnostics = recover_under_lock(
            workspace,
            connections,
            apply_options.command,
            options=KEEP_THROTTLES,
            progress=apply_options.progress,
        )
        notices = (*in_force.diagnostics, *recovery_diagnostics)
        live, _ = _observe_assignments(cluster, assignments)
        validate_scope(_list_topics(assignments), workspace.project.scope)
        directories = _list_directories(assignments)
        request = _build_request(workspace, in_force, apply_options)
        plan = build_cancel_plan(request, live, [a.partition for a in assignments], directories)
        plan = prune_denied_operations(plan, connections, request.state, in_force, apply_options)
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        run: ApplyResult | None = ApplyResult(None, plan, {})
        if plan.operations:
            run = confirm_and_apply(
                workspace, connections, plan, secrets, apply_options, in_force, notices, clean_up=False
            )
        else:
            report(notices)  # An empty plan is not confirmed, so its diagnostics have to be shown here.
        if run is None:
            return ReassignResult(None)
        denials = _list_denials(run)
        problems = _report_failures(run, "Error cancelling partition reassignments", denials)
        cancelled_partitions = _find_cancelled_partitions(run, cluster)
        if cancelled_partitions or not problems:
            write_text(render_cancelled(cancelled_partitions))
        returned_replicas = _list_returned_replicas(run, live)
        if returned_replicas or not denials:
            write_text(render_dirs_started(returned_replicas) if returned_replicas else NO_MOVES)
        if not keep_throttles:
            clear_throttles(workspace, connections, apply_options.command, write_text, report)
            if not cluster.moves():
                report(check_foreign_throttles(workspace, cluster, _list_topics(assignments)))
        return ReassignResult(run, problems)


def _build_request(
    workspace: Workspace, in_force: ActivePolicies, apply_options: ApplyOptions
) -> PlanRequest:
    project = workspace.project
    return PlanRequest(
        project=project.name,
        env=project.environment.name,
        cluster_name=workspace.cluster_name,
        desired=(),
        state=workspace.store.read(),
        scope=PlanScope(overrides=apply_options.overrides),
        judge=in_force.judge,
    )


def _build_execution_request(
    workspace: Workspace, assignments: Sequence[PartitionAssignment], options: ReassignOptions
) -> ExecutionRequest:
    """Build the request for a plan from the options.

    If the options contain no throttle, the throttle of the environment's pace applies. All other fields of
    the pace are ignored, because --execute does not wait for batches.
    """
    plan_options = PlanOptions(Pace(throttle=options.throttle))
    pace = get_default_pace(complete_options(plan_options, workspace.project))
    return ExecutionRequest(
        targets={a.partition: a.replicas for a in assignments},
        directories=_list_directories(assignments),
        additional=options.additional,
        resize=options.resize,
        throttle=pace.throttle,
        dirs_throttle=options.dirs_throttle,
    )


def _observe_assignments(
    cluster: Cluster, assignments: Sequence[PartitionAssignment]
) -> tuple[KafkaState, Mapping[int, Sequence[LogDir]]]:
    names = _list_topics(assignments)
    live = observe(cluster, KafkaSelection(names))
    log_dirs = cluster.log_dirs(sorted(names))
    return replace(live, dirs=collect_replica_dirs(log_dirs)), log_dirs


def _list_topics(assignments: Iterable[PartitionAssignment]) -> frozenset[str]:
    return frozenset(a.partition.topic for a in assignments)


def _list_directories(assignments: Iterable[PartitionAssignment]) -> dict[Replica, str]:
    return {
        (a.partition, broker): path
        for a in assignments
        for broker, path in zip(a.replicas, a.log_dirs or (), strict=False)
        if path != ANY_LOG_DIR
    }


def _build_current_assignments(
    partitions: Iterable[TopicPartition], live: KafkaState, log_dirs: Mapping[int, Sequence[LogDir]]
) -> list[PartitionAssignment]:
    """Return the current assignments, so that users can undo the moves.

    For a partition that is already moving, return the assignment before the move.
    """
    dirs = collect_replica_dirs(log_dirs)
    assignments = []
    for partition in partitions:
        move = live.moves.get(partition)
        replicas = move.origin if move else live.replicas(partition) or ()
        dirs_of_replicas = (dirs.get((partition, broker)) for broker in replicas)
        paths = tuple((d.path if d else None) or ANY_LOG_DIR for d in dirs_of_replicas)
        assignments.append(PartitionAssignment(partition, replicas, paths))
    return assignments


def _find_started_partitions(
    run: ApplyResult, execution_request: ExecutionRequest, cluster: Cluster
) -> list[TopicPartition]:
    """Return the partitions that have reached their target or are moving to their target.

    An operation that failed may have started some of its moves, so kdeclare reads its partitions again.
    """
    staying = set(find_unmoved_partitions(run.plan))
    uncertain_partitions = {
        TopicPartition.parse(name)
        for op in run.plan.operations
        if get_operation_type(op).goes_on and _find_status(run, op) not in (Status.DONE, Status.STARTED)
        for name in get_targets(op)
    }
    if uncertain_partitions:
        live = observe(cluster, KafkaSelection(frozenset(p.topic for p in uncertain_partitions)))
        staying |= {p for p in uncertain_partitions if live.replicas(p) != execution_request.targets[p]}
    return [p for p in sorted(execution_request.targets) if p not in staying]


def _find_status(run: ApplyResult, op: Operation) -> Status | None:
    result = run.results.get(op.id)
    return result.status if result else None


def _report_not_moved(run: ApplyResult) -> tuple[Diagnostic, ...]:
    return _report_failures(run, "Error reassigning partition(s)", _list_denials(run))


def _list_denials(run: ApplyResult) -> list[str]:
    denials = [d.detail for d in run.plan.diagnostics if d.severity is Severity.DENIED]
    return denials + [f"{v.topic or v.resource}: {v.message}" for v in run.plan.verdicts if v.is_denial]


def _report_failures(run: ApplyResult, summary: str, denials: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    ok_statuses = (Status.DONE, Status.STARTED, Status.SKIPPED)
    failures = [
        r.message or f"{r.id}: {r.status}" for r in run.results.values() if r.status not in ok_statuses
    ]
    lines = [*denials, *failures]
    return (error("not-reassigned", summary, "\n".join(lines)),) if lines else ()


def _await_dirs(
    cluster: Cluster,
    execution_request: ExecutionRequest,
    started_partitions: Collection[TopicPartition],
    options: ReassignOptions,
    write_text: TextWriter,
) -> tuple[Diagnostic, ...]:
    """Poll until each replica is in its target log directory or moving to it, as Kafka's tool does."""
    due_paths = {
        replica: path
        for replica, path in execution_request.directories.items()
        if replica[0] in started_partitions
    }
    if not due_paths:
        return ()
    names = sorted({partition.topic for partition, _ in due_paths})
    deadline = time.monotonic() + options.start_timeout_s
    while True:
        states = _build_dir_states(due_paths, cluster.log_dirs(names))
        late_states = [s for s in states if s.dirs is None or s.dirs.final_path != s.target]
        if not late_states or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    write_text(render_dirs_started(state for state in states if state not in late_states))
    if not late_states:
        return ()
    return (
        error(
            "dirs-not-started",
            "Log directory moves not started",
            render_dirs_not_started(late_states),
            hint="Run kdeclare reassign --verify later to check again. If a broker does not have the "
            "replica yet, it will create the replica in the requested directory, unless it restarts first.",
        ),
    )


def _build_dir_states(
    directories: Mapping[Replica, str], log_dirs: Mapping[int, Sequence[LogDir]]
) -> list[DirState]:
    dirs = collect_replica_dirs(log_dirs)
    return [
        DirState(broker, partition, path, dirs.get((partition, broker)), is_silent=broker not in log_dirs)
        for (partition, broker), path in sorted(directories.items())
    ]


def _build_verify_state(assignment: PartitionAssignment, live: KafkaState) -> VerifyState:
    partition = assignment.partition
    return VerifyState(partition, assignment.replicas, live.replicas(partition), partition in live.moves)


def _find_cancelled_partitions(run: ApplyResult, cluster: Cluster) -> list[TopicPartition]:
    """Return the partitions whose move was cancelled.

    If the cluster refuses to cancel the move of one partition, it still cancels the moves of the others.
    """
    ops = [op for op in run.plan.operations if op.verb == _CANCEL_TYPE.name]
    requested = [TopicPartition.parse(name) for op in ops for name in get_targets(op)]
    if all(_find_status(run, op) is Status.DONE for op in ops):
        return requested
    ongoing_moves = cluster.moves(sorted({partition.topic for partition in requested}))
    return [partition for partition in requested if partition not in ongoing_moves]


def _list_returned_replicas(run: ApplyResult, live: KafkaState) -> list[DirState]:
    return [
        DirState(broker, partition, path, live.dirs.get((partition, broker)))
        for op in run.plan.operations
        if op.verb == _RELOCATE_TYPE.name and _find_status(run, op) is Status.DONE
        for (partition, broker), path in (
            (parse_replica(n), path) for n, path in get_arguments(op, RelocateArgs).replicas.items()
        )
    ]
