"""The plans of `kdeclare reassign`: plans that move individual partitions, and plans that cancel moves.

A plan that moves partitions is the plan of a temporary `Reassignment` resource. The plan also contains parts
that a manifest cannot declare: log directories, a throttle for moves that are already in flight, and blocked
moves that would change the replication factor.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

from kdeclare.core.diagnostics import Diagnostic, denied, sort_diagnostics, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.plan import ClusterRef, Plan, PlanBase, Summary
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import (
    Action,
    Change,
    FieldChange,
    FieldOp,
    Reason,
    Risk,
    find_highest_risk,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.compared_request import validate_cluster_id
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.providers.kafka.collector import observe
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import build_identity_view
from kdeclare.providers.kafka.operations.partitions import collect_topics, get_targets
from kdeclare.providers.kafka.plan_options import KafkaPlanOptions
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.completion import is_reassignment
from kdeclare.providers.kafka.reassignment.diff import REPLICAS_PREFIX, REPLICATION_FACTOR_GUARD
from kdeclare.providers.kafka.reassignment.operations.arguments import MovesArgs, RelocateArgs, ThrottleArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import (
    CancelMoves,
    RelocateReplicas,
    format_replica,
)
from kdeclare.providers.kafka.reassignment.operations.throttle import (
    ClearThrottle,
    SetThrottle,
    build_throttle_operation,
)
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import (
    PendingMoveCleanup,
    ThrottledReplicas,
    ThrottleEntries,
    get_move_cleanup,
)
from kdeclare.providers.kafka.reassignment.spec import ReassignmentBody, Target
from kdeclare.providers.kafka.risks import assess_placement_field
from kdeclare.providers.kafka.topic.diff import MOVE_IN_FLIGHT

EXECUTE_RESOURCE = ResourceId("Reassignment", "reassign")
RESIZED_RESOURCE = ResourceId("Reassignment", "resized")
"""The resource id under which the plan shows blocked moves that would change the replication factor."""

_SET_THROTTLE, _CLEAR_THROTTLE, _RELOCATE_TYPE = SetThrottle(), ClearThrottle(), RelocateReplicas()
_BEFORE_MOVE = "throttles before a move"
_ADDITIONAL_HINT = "Check the new replicas: --additional changes the target of this in-flight move."

Replicas = tuple[int, ...]
Replica = tuple[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """The requested moves.

    targets: the target replicas by partition.
    directories: the target log directories by partition and broker.
    additional: whether to change the targets of moves in progress.
    resize: whether changes to the replication factor are allowed.
    throttle: the maximum bytes per second between brokers.
    dirs_throttle: the maximum bytes per second between log directories.
    """

    targets: Mapping[TopicPartition, Replicas]
    directories: Mapping[Replica, str] = field(default_factory=dict)
    additional: bool = False
    resize: bool = True
    throttle: int | None = None
    dirs_throttle: int | None = None


def build_execution_plan(
    request: PlanRequest,
    execution_request: ExecutionRequest,
    live: KafkaState,
    connections: Connections,
    secrets: SecretSource,
    progress: Progress,
) -> Plan:
    """Plan the requested moves. Raises Fault if the cluster does not respond.

    Raises KdeclareError if the state belongs to a different cluster.
    request: the request for the plan, without resources.
    live: the topics with their moves and their log directories.
    """
    resized_targets = {} if execution_request.resize else _find_resized(execution_request.targets, live)
    targets = tuple(
        Target(p, t, None) for p, t in sorted(execution_request.targets.items()) if p not in resized_targets
    )
    body = ReassignmentBody(targets, execution_request.resize, pace=Pace(throttle=execution_request.throttle))
    plan_options = KafkaPlanOptions(
        rf_guard="client" if execution_request.resize else None,
        override_reassignments=execution_request.additional,
    )
    scope = PlanScope(complete=False, overrides=request.scope.overrides, options=PlanOptions(plan_options))
    desired = (DesiredResource(EXECUTE_RESOURCE, body),) if targets else ()
    plan = build_plan(replace(request, desired=desired, scope=scope), connections, secrets, progress)
    plan = replace(
        plan,
        changes=tuple(replace(change, reason=Reason.ASKED) for change in plan.changes),
        diagnostics=tuple(map(_with_tool_hint, plan.diagnostics)),
    )
    if plan.has_errors:
        return plan
    unmoved = {*resized_targets, *find_unmoved_partitions(plan)}
    execution_request = replace(
        execution_request,
        targets={t.partition: t.replicas for t in targets if t.partition not in unmoved},
        directories={r: path for r, path in execution_request.directories.items() if r[0] not in unmoved},
    )
    move_cleanup = get_move_cleanup(request.state)
    relocations = {
        r: path for r, path in execution_request.directories.items() if _find_target_dir(live, r) != path
    }
    plan = _with_relocations(plan, relocations, live)
    plan = _with_throttle(
        plan, execution_request, live, move_cleanup, connections.get(KafkaConnection).cluster
    )
    return _with_denied(plan, resized_targets, live)


def find_unmoved_partitions(plan: Plan) -> frozenset[TopicPartition]:
    """Return the partitions that the plan does not move because a guard or a policy denied their moves."""
    moves = [op for op in plan.operations if is_reassignment(op)]
    moving_paths = {f"{REPLICAS_PREFIX}{name}" for op in moves for name in get_targets(op)}
    stated_paths = {
        f.path for change in plan.changes for f in change.fields if f.path.startswith(REPLICAS_PREFIX)
    }
    return frozenset(
        TopicPartition.parse(path.removeprefix(REPLICAS_PREFIX)) for path in stated_paths - moving_paths
    )


def _find_resized(
    targets: Mapping[TopicPartition, Replicas], live: KafkaState
) -> dict[TopicPartition, Replicas]:
    return {p: target for p, target in targets.items() if len(live.replicas(p) or ()) != len(target)}


def _with_tool_hint(diagnostic: Diagnostic) -> Diagnostic:
    return (
        replace(diagnostic, hint=_ADDITIONAL_HINT)
        if diagnostic.code == MOVE_IN_FLIGHT and not diagnostic.is_blocking
        else diagnostic
    )


def _find_target_dir(live: KafkaState, replica: Replica) -> str | None:
    dirs = live.dirs.get(replica)
    return dirs.final_path if dirs else None


def _with_relocations(plan: Plan, relocations: Mapping[Replica, str], live: KafkaState) -> Plan:
    """Add the operation that sets the log directories of replicas. It runs before the moves."""
    if not relocations:
        return plan
    op = build_relocate_operation(EXECUTE_RESOURCE, relocations, live)
    relocate_needs = {op.id: "brokers must know the log directory first"}
    operations = tuple(
        replace(o, needs={**o.needs, **relocate_needs}) if is_reassignment(o) else o for o in plan.operations
    )
    return _with_fields(replace(plan, operations=(op, *operations)), _RELOCATE_TYPE.fields(op))


def build_relocate_operation(
    resource: ResourceId, relocations: Mapping[Replica, str], live: KafkaState
) -> Operation:
    """Build the operation that moves replicas to different log directories of the same brokers."""
    args = RelocateArgs({format_replica(r): path for r, path in sorted(relocations.items())})
    paths_before = {
        format_replica(r): path for r in sorted(relocations) if (path := _find_target_dir(live, r))
    }
    inverse = Inverse(_RELOCATE_TYPE.name, RelocateArgs(paths_before))
    bare_op = Operation(
        f"{_RELOCATE_TYPE.name}:{resource}", _RELOCATE_TYPE.name, resource, args, {}, inverse=inverse
    )
    return replace(bare_op, expect=_RELOCATE_TYPE.compute_view(bare_op, LiveState(live)))


def _with_throttle(
    plan: Plan,
    execution_request: ExecutionRequest,
    live: KafkaState,
    move_cleanup: PendingMoveCleanup,
    cluster: Cluster,
) -> Plan:
    """Add a throttle for moves that are not part of the plan's reassignments.

    These are moves that are already in progress, and moves between log directories of one broker.
    """
    in_flight = [
        p
        for p, target in execution_request.targets.items()
        if p in live.moves and live.moves[p].target == target
    ]
    required_entries = throttles.merge_entries(
        _build_move_entries(in_flight, execution_request, live),
        _build_directory_entries(execution_request, live),
    )
    if not required_entries:
        return plan
    throttle_state = observe(cluster, throttles.build_selection(required_entries))
    missing_throttles = throttles.find_missing(required_entries, move_cleanup.throttles, throttle_state)
    entries: ThrottleEntries = missing_throttles.entries
    for op in plan.operations:
        if op.verb == _SET_THROTTLE.name:
            entries = throttles.subtract_entries(entries, get_arguments(op, ThrottleArgs).entries)
    plan = replace(
        plan,
        diagnostics=sort_diagnostics(
            [*plan.diagnostics, *_warn_foreign_throttles(missing_throttles.foreign_rates)]
        ),
    )
    if in_flight:
        # In-flight and new moves share the throttle rates. Therefore, this plan must not remove the rates
        # after its new moves. A later command removes the rates after all moves have finished.
        plan = replace(
            plan, operations=tuple(op for op in plan.operations if op.verb != _CLEAR_THROTTLE.name)
        )
    if not entries:
        return plan
    op = _build_set_throttle(entries, in_flight, throttle_state)
    operations = tuple(
        replace(o, needs={**o.needs, op.id: _BEFORE_MOVE}) if o.verb == _RELOCATE_TYPE.name else o
        for o in plan.operations
    )
    return _with_fields(
        replace(plan, operations=(op, *operations)), _build_throttle_fields(op, throttle_state)
    )


def _build_move_entries(
    in_flight: Iterable[TopicPartition], execution_request: ExecutionRequest, live: KafkaState
) -> ThrottleEntries:
    if execution_request.throttle is None:
        return {}
    shifts = [throttles.build_transfer(p, (), live.moves[p], execution_request.targets[p]) for p in in_flight]
    return throttles.build_entries(shifts, execution_request.throttle, live.cluster.serving_broker_ids)


def _build_directory_entries(execution_request: ExecutionRequest, live: KafkaState) -> ThrottleEntries:
    """Return the throttle rate for brokers that copy replicas between log directories.

    A broker that does not have the replica yet creates it in the target directory. Such a replica is
    therefore not copied between directories.
    """
    if execution_request.dirs_throttle is None:
        return {}
    copying_brokers = {
        replica[1]
        for replica, path in execution_request.directories.items()
        if (dirs := live.dirs.get(replica)) and (dirs.path != path or dirs.arriving)
    }
    rate = {throttles.LOG_DIRS_RATE_KEY: str(execution_request.dirs_throttle)}
    return {
        f"{ConfigScope.BROKER}/{broker}": rate
        for broker in sorted(copying_brokers & live.cluster.serving_broker_ids)
    }


def _build_set_throttle(
    entries: ThrottleEntries, in_flight: Iterable[TopicPartition], throttle_state: KafkaState
) -> Operation:
    args = ThrottleArgs({}, tuple(str(partition) for partition in sorted(in_flight)))
    bare_op = build_throttle_operation(
        _SET_THROTTLE, f"{EXECUTE_RESOURCE}#2", EXECUTE_RESOURCE, entries, args
    )
    return replace(bare_op, expect=_SET_THROTTLE.compute_view(bare_op, LiveState(throttle_state)))


def _build_throttle_fields(op: Operation, throttle_state: KafkaState) -> tuple[FieldChange, ...]:
    """Build one field change per throttle rate.

    The old value is the value of the first broker that gets the rate.
    """
    fields: dict[str, FieldChange] = {}
    for entity, keys in get_arguments(op, ThrottleArgs).entries.items():
        current_values = throttles.get_current_values(throttle_state, entity)
        for key, value in keys.items():
            if not isinstance(value, ThrottledReplicas) and key not in fields:
                fields[key] = FieldChange(key, FieldOp.CHANGE, current_values.get(key), value)
    return tuple(fields.values())


def _warn_foreign_throttles(foreign_rates: Mapping[str, str]) -> Iterable[Diagnostic]:
    for entity, rate in foreign_rates.items():
        yield warning(
            "foreign-throttle",
            "Throttle set by another client",
            f"{entity} has a throttle of {rate} bytes per second that kdeclare did not set. kdeclare leaves "
            "the throttle unchanged, so it applies to the moves.",
            hint="If the throttle is no longer needed, remove it with kafka-configs.",
            resource=str(EXECUTE_RESOURCE),
            subject=entity,
        )


def _with_fields(plan: Plan, fields: tuple[FieldChange, ...]) -> Plan:
    """Add fields to the change of `EXECUTE_RESOURCE`. Create the change if the plan does not contain it.

    A change is blocked if all of its moves were denied. Adding fields unblocks the change, because the plan
    contains an operation for these fields.
    """
    if not fields:
        return plan
    fields = tuple(map(assess_placement_field, fields))
    existing_change = next((change for change in plan.changes if change.id == EXECUTE_RESOURCE), None)
    if existing_change is not None:
        fields = (*existing_change.fields, *fields)
        extended_change = replace(
            existing_change,
            fields=fields,
            blocked=None,
            risk=find_highest_risk(fields, minimum=existing_change.risk),
        )
        plan = replace(
            plan, changes=tuple(extended_change if c is existing_change else c for c in plan.changes)
        )
        if not existing_change.blocked:
            return plan
        summary_before = plan.summary
        return replace(
            plan,
            summary=replace(
                summary_before, update=summary_before.update + 1, blocked=summary_before.blocked - 1
            ),
        )
    change = Change(EXECUTE_RESOURCE, Action.UPDATE, Reason.ASKED, find_highest_risk(fields), fields)
    summary = replace(plan.summary, update=plan.summary.update + 1, unchanged=plan.summary.unchanged - 1)
    return replace(plan, changes=(*plan.changes, change), summary=summary)


def _with_denied(plan: Plan, resized_targets: Mapping[TopicPartition, Replicas], live: KafkaState) -> Plan:
    """Add a blocked change for partitions whose replication factor would change.

    The diagnostics contain the error message that Kafka brokers return.
    """
    if not resized_targets:
        return plan
    current = {p: live.replicas(p) or () for p in sorted(resized_targets)}
    fields = tuple(
        assess_placement_field(
            FieldChange(f"{REPLICAS_PREFIX}{p}", FieldOp.CHANGE, list(replicas), list(resized_targets[p]))
        )
        for p, replicas in current.items()
    )
    problems = [
        denied(
            REPLICATION_FACTOR_GUARD,
            "Replication factor would change",
            f"{p}: The replication factor is changed from {len(replicas)} to {len(resized_targets[p])}",
            hint="Keep the number of replicas, or omit --disallow-replication-factor-change.",
            resource=str(RESIZED_RESOURCE),
            subject=str(p),
        )
        for p, replicas in current.items()
    ]
    change = Change(
        RESIZED_RESOURCE,
        Action.UPDATE,
        Reason.ASKED,
        Risk.DISRUPTIVE,
        fields,
        blocked=REPLICATION_FACTOR_GUARD,
    )
    return replace(
        plan,
        changes=(*plan.changes, change),
        diagnostics=sort_diagnostics([*plan.diagnostics, *problems]),
        summary=replace(plan.summary, blocked=plan.summary.blocked + 1),
    )


CANCEL_RESOURCE = ResourceId("Reassignment", "cancel")

_CANCEL_TYPE = CancelMoves()


def build_cancel_plan(
    request: PlanRequest,
    live: KafkaState,
    partitions: Collection[TopicPartition],
    replicas: Collection[Replica] = (),
) -> Plan:
    """Build a plan that cancels the moves of ``partitions`` and the log directory moves of ``replicas``.

    Partitions and replicas that are not being moved are ignored. Raises KdeclareError if the state belongs to
    a different cluster.
    request: the request for the plan, without resources.
    live: the topics with their moves and their log directories.
    """
    state = request.state
    if state is not None:
        validate_cluster_id(state.cluster_id, live.cluster.id, request.cluster_name)
    moving_partitions = sorted(set(partitions) & live.moves.keys())
    paths_to_restore = {r: path for r in sorted(set(replicas)) if (path := _find_origin_dir(live, r))}
    operations = [_build_cancel_operation(moving_partitions, live)] if moving_partitions else []
    operations += (
        [build_relocate_operation(CANCEL_RESOURCE, paths_to_restore, live)] if paths_to_restore else []
    )
    fields = tuple(assess_placement_field(f) for op in operations for f in get_operation_type(op).fields(op))
    risk = find_highest_risk(fields, minimum=Risk.DISRUPTIVE)
    change = Change(CANCEL_RESOURCE, Action.UPDATE, Reason.ASKED, risk, fields)
    return Plan(
        project=request.project,
        env=request.env,
        cluster=ClusterRef(live.cluster.id, request.cluster_name),
        base=PlanBase(state.lineage if state else None, state.serial if state else 0),
        summary=Summary(update=1 if operations else 0),
        changes=(change,) if operations else (),
        operations=tuple(operations),
        diagnostics=tuple(
            _warn_cancel_grows(p, live) for p in moving_partitions if _has_more_after_cancel(p, live)
        ),
    )


def _has_more_after_cancel(partition: TopicPartition, live: KafkaState) -> bool:
    move = live.moves[partition]
    return len(move.origin) > len(move.target)


def _warn_cancel_grows(partition: TopicPartition, live: KafkaState) -> Diagnostic:
    move = live.moves[partition]
    return warning(
        "cancel-grows",
        "Cancelling leaves extra replicas",
        f"{partition} is moving to brokers {list(move.target)}. If the move is cancelled, the partition "
        f"stays on brokers {list(move.origin)}, so it keeps more replicas than it would have "
        "after the move. Either the move reduces the number of replicas, or its target was changed while it "
        "was running.",
        hint="To restore the replicas that kdeclare recorded before the move, run kdeclare rollback instead.",
        resource=str(CANCEL_RESOURCE),
        subject=str(partition),
    )


def _find_origin_dir(live: KafkaState, replica: Replica) -> str | None:
    """Return the log directory that a replica is leaving, or None if the replica stays in its directory.

    Return None for a replica that the cancelled move adds, because the cancellation removes the replica.
    """
    move = live.moves.get(replica[0])
    dirs = live.dirs.get(replica)
    if dirs is None or dirs.arriving is None or (move and replica[1] in move.adding):
        return None
    return dirs.path


def _build_cancel_operation(moving_partitions: Collection[TopicPartition], live: KafkaState) -> Operation:
    current_targets: dict[str, JsonValue] = {str(p): list(live.moves[p].target) for p in moving_partitions}
    args = MovesArgs({str(p): live.moves[p].origin for p in moving_partitions})
    expect: Mapping[str, JsonValue] = current_targets | build_identity_view(
        collect_topics(current_targets), live
    )
    bare_op = Operation(
        f"{_CANCEL_TYPE.name}:{CANCEL_RESOURCE}", _CANCEL_TYPE.name, CANCEL_RESOURCE, args, expect
    )
    return with_inverse(_CANCEL_TYPE, bare_op)
