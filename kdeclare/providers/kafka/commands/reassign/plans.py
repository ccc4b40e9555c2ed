"""The plans of `kdeclare reassign`: of moves given partition by partition, and of stopping moves in flight.

The first is the plan of an ephemeral `Reassignment`, and what a manifest cannot say comes on top: log
directories, a throttle for what is on its way already, and partitions that alone are denied.
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
from kdeclare.engine.planning.build import build_plan, validate_cluster_id
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

RESOURCE = ResourceId("Reassignment", "reassign")
RESIZED = ResourceId("Reassignment", "resized")
"""What stands for the partitions whose replication factor must not change."""

_SET, _CLEAR, _RELOCATE = SetThrottle(), ClearThrottle(), RelocateReplicas()
_BEFORE = "throttles before a move"
_ADDITIONAL = "--additional: it is sent elsewhere."

Replicas = tuple[int, ...]
Replica = tuple[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Execution:
    """What is asked for.

    targets: replicas by partition. directories: log directories by partition and broker.
    additional: also partitions that are being moved already. resize: whether the replication factor may
    change. throttle, dirs_throttle: bytes a second, between brokers and between log directories.
    """

    targets: Mapping[TopicPartition, Replicas]
    directories: Mapping[Replica, str] = field(default_factory=dict)
    additional: bool = False
    resize: bool = True
    throttle: int | None = None
    dirs_throttle: int | None = None


def execution_plan(
    request: PlanRequest,
    wanted: Execution,
    live: KafkaState,
    connections: Connections,
    secrets: SecretSource,
    progress: Progress,
) -> Plan:
    """Plan it; nothing is changed anywhere.

    request: without any resources. live: the topics with their moves, and their log directories.
    Raises Fault when the cluster does not answer, KdeclareError when the state is another cluster's.
    """
    resized = {} if wanted.resize else _resized(wanted.targets, live)
    targets = tuple(Target(p, t, None) for p, t in sorted(wanted.targets.items()) if p not in resized)
    body = ReassignmentBody(targets, wanted.resize, pace=Pace(throttle=wanted.throttle))
    chosen = KafkaPlanOptions(
        rf_guard="client" if wanted.resize else None, override_reassignments=wanted.additional
    )
    scope = PlanScope(complete=False, overrides=request.scope.overrides, options=PlanOptions(chosen))
    declared = (DesiredResource(RESOURCE, body),) if targets else ()
    plan = build_plan(replace(request, desired=declared, scope=scope), connections, secrets, progress)
    plan = replace(
        plan,
        changes=tuple(replace(change, reason=Reason.ASKED) for change in plan.changes),
        diagnostics=tuple(map(_in_the_tools_words, plan.diagnostics)),
    )
    if plan.has_errors:
        return plan
    stay = {*resized, *not_to_move(plan)}
    wanted = replace(
        wanted,
        targets={t.partition: t.replicas for t in targets if t.partition not in stay},
        directories={r: path for r, path in wanted.directories.items() if r[0] not in stay},
    )
    left = get_move_cleanup(request.state)
    relocations = {r: path for r, path in wanted.directories.items() if _heading(live, r) != path}
    plan = _with_relocations(plan, relocations, live)
    plan = _with_throttle(plan, wanted, live, left, connections.get(KafkaConnection).cluster)
    return _with_denied(plan, resized, live)


def not_to_move(plan: Plan) -> frozenset[TopicPartition]:
    """What a plan says of partitions, and nothing of it does: a guard or a policy has denied it."""
    moves = [op for op in plan.operations if is_reassignment(op)]
    moving = {f"{REPLICAS_PREFIX}{name}" for op in moves for name in get_targets(op)}
    stated = {f.path for change in plan.changes for f in change.fields if f.path.startswith(REPLICAS_PREFIX)}
    return frozenset(TopicPartition.parse(path.removeprefix(REPLICAS_PREFIX)) for path in stated - moving)


def _resized(targets: Mapping[TopicPartition, Replicas], live: KafkaState) -> dict[TopicPartition, Replicas]:
    return {p: target for p, target in targets.items() if len(live.replicas(p) or ()) != len(target)}


def _in_the_tools_words(found: Diagnostic) -> Diagnostic:
    return (
        replace(found, hint=_ADDITIONAL) if found.code == MOVE_IN_FLIGHT and not found.is_blocking else found
    )


def _heading(live: KafkaState, replica: Replica) -> str | None:
    dirs = live.dirs.get(replica)
    return dirs.final_path if dirs else None


def _with_relocations(plan: Plan, relocations: Mapping[Replica, str], live: KafkaState) -> Plan:
    """Log directories come before the moves, which need brokers that know them."""
    if not relocations:
        return plan
    op = relocation(RESOURCE, relocations, live)
    because = {op.id: "brokers know the log directory first"}
    operations = tuple(
        replace(o, needs={**o.needs, **because}) if is_reassignment(o) else o for o in plan.operations
    )
    return _with_fields(replace(plan, operations=(op, *operations)), _RELOCATE.fields(op))


def relocation(resource: ResourceId, relocations: Mapping[Replica, str], live: KafkaState) -> Operation:
    """The operation that sends replicas into other log directories of their brokers."""
    args = RelocateArgs({format_replica(r): path for r, path in sorted(relocations.items())})
    before = {format_replica(r): path for r in sorted(relocations) if (path := _heading(live, r))}
    inverse = Inverse(_RELOCATE.name, RelocateArgs(before))
    bare = Operation(f"{_RELOCATE.name}:{resource}", _RELOCATE.name, resource, args, {}, inverse=inverse)
    return replace(bare, expect=_RELOCATE.compute_view(bare, LiveState(live)))


def _with_throttle(
    plan: Plan, wanted: Execution, live: KafkaState, left: PendingMoveCleanup, cluster: Cluster
) -> Plan:
    """A throttle for what the plan itself does not move: it is on its way, or stays on its broker."""
    flying = [p for p, target in wanted.targets.items() if p in live.moves and live.moves[p].target == target]
    asked = throttles.merge_entries(_of_moves(flying, wanted, live), _of_directories(wanted, live))
    if not asked:
        return plan
    seen = observe(cluster, throttles.build_selection(asked))
    missing = throttles.find_missing(asked, left.throttles, seen)
    entries: ThrottleEntries = missing.entries
    for op in plan.operations:
        if op.verb == _SET.name:
            entries = throttles.subtract_entries(entries, get_arguments(op, ThrottleArgs).entries)
    plan = replace(plan, diagnostics=sort_diagnostics([*plan.diagnostics, *_findings(missing.foreign_rates)]))
    if flying:
        # the rates are for both: whichever command finds all of it over takes them away
        plan = replace(plan, operations=tuple(op for op in plan.operations if op.verb != _CLEAR.name))
    if not entries:
        return plan
    op = _setting(entries, flying, seen)
    operations = tuple(
        replace(o, needs={**o.needs, op.id: _BEFORE}) if o.verb == _RELOCATE.name else o
        for o in plan.operations
    )
    return _with_fields(replace(plan, operations=(op, *operations)), _throttle_fields(op, seen))


def _of_moves(flying: Iterable[TopicPartition], wanted: Execution, live: KafkaState) -> ThrottleEntries:
    if wanted.throttle is None:
        return {}
    shifts = [throttles.build_transfer(p, (), live.moves[p], wanted.targets[p]) for p in flying]
    return throttles.build_entries(shifts, wanted.throttle, live.cluster.serving_broker_ids)


def _of_directories(wanted: Execution, live: KafkaState) -> ThrottleEntries:
    """The rate of brokers that have copying to do; a replica to come is put in its place right away."""
    if wanted.dirs_throttle is None:
        return {}
    copying = {
        replica[1]
        for replica, path in wanted.directories.items()
        if (dirs := live.dirs.get(replica)) and (dirs.path != path or dirs.arriving)
    }
    rate = {throttles.LOG_DIRS_RATE_KEY: str(wanted.dirs_throttle)}
    return {
        f"{ConfigScope.BROKER}/{broker}": rate for broker in sorted(copying & live.cluster.serving_broker_ids)
    }


def _setting(entries: ThrottleEntries, flying: Iterable[TopicPartition], seen: KafkaState) -> Operation:
    args = ThrottleArgs({}, tuple(str(partition) for partition in sorted(flying)))
    bare = build_throttle_operation(_SET, f"{RESOURCE}#2", RESOURCE, entries, args)
    return replace(bare, expect=_SET.compute_view(bare, LiveState(seen)))


def _throttle_fields(op: Operation, seen: KafkaState) -> tuple[FieldChange, ...]:
    """One a rate, with what was there before; where brokers differ, the one with the lowest id speaks."""
    fields: dict[str, FieldChange] = {}
    for entity, keys in get_arguments(op, ThrottleArgs).entries.items():
        now = throttles.get_current_values(seen, entity)
        for key, value in keys.items():
            if not isinstance(value, ThrottledReplicas) and key not in fields:
                fields[key] = FieldChange(key, FieldOp.CHANGE, now.get(key), value)
    return tuple(fields.values())


def _findings(foreign: Mapping[str, str]) -> Iterable[Diagnostic]:
    for entity, rate in foreign.items():
        yield warning(
            "foreign-throttle",
            "Someone else's throttle holds",
            f"{entity} has a throttle of {rate} bytes a second that kdeclare did not set; it is left alone.",
            hint="Have it taken away where nobody needs it any more.",
            resource=str(RESOURCE),
            subject=entity,
        )


def _with_fields(plan: Plan, fields: tuple[FieldChange, ...]) -> Plan:
    """The plan with more fields in the change of `RESOURCE`, which is made where there is none.

    The fields are of an operation: if all the moves were denied, there is something left of it now.
    """
    if not fields:
        return plan
    fields = tuple(map(assess_placement_field, fields))
    found = next((change for change in plan.changes if change.id == RESOURCE), None)
    if found is not None:
        fields = (*found.fields, *fields)
        more = replace(found, fields=fields, blocked=None, risk=find_highest_risk(fields, minimum=found.risk))
        plan = replace(plan, changes=tuple(more if c is found else c for c in plan.changes))
        if not found.blocked:
            return plan
        s = plan.summary
        return replace(plan, summary=replace(s, update=s.update + 1, blocked=s.blocked - 1))
    change = Change(RESOURCE, Action.UPDATE, Reason.ASKED, find_highest_risk(fields), fields)
    summary = replace(plan.summary, update=plan.summary.update + 1, unchanged=plan.summary.unchanged - 1)
    return replace(plan, changes=(*plan.changes, change), summary=summary)


def _with_denied(plan: Plan, resized: Mapping[TopicPartition, Replicas], live: KafkaState) -> Plan:
    """The partitions that must not be moved, beside those that are, in the words of the brokers."""
    if not resized:
        return plan
    current = {p: live.replicas(p) or () for p in sorted(resized)}
    fields = tuple(
        assess_placement_field(
            FieldChange(f"{REPLICAS_PREFIX}{p}", FieldOp.CHANGE, list(replicas), list(resized[p]))
        )
        for p, replicas in current.items()
    )
    problems = [
        denied(
            REPLICATION_FACTOR_GUARD,
            "The replication factor would change",
            f"{p}: The replication factor is changed from {len(replicas)} to {len(resized[p])}",
            hint="Name as many replicas as it has, or leave out --disallow-replication-factor-change.",
            resource=str(RESIZED),
            subject=str(p),
        )
        for p, replicas in current.items()
    ]
    change = Change(
        RESIZED, Action.UPDATE, Reason.ASKED, Risk.DISRUPTIVE, fields, blocked=REPLICATION_FACTOR_GUARD
    )
    return replace(
        plan,
        changes=(*plan.changes, change),
        diagnostics=sort_diagnostics([*plan.diagnostics, *problems]),
        summary=replace(plan.summary, blocked=plan.summary.blocked + 1),
    )


CANCELLED = ResourceId("Reassignment", "cancel")

_CANCEL = CancelMoves()


def cancel_plan(
    request: PlanRequest,
    live: KafkaState,
    partitions: Collection[TopicPartition],
    replicas: Collection[Replica] = (),
) -> Plan:
    """Cancel what of ``partitions`` is being moved, and send ``replicas`` back that change log directories.

    request: without any resources. live: the topics with their moves, and their log directories.
    Raises KdeclareError when the state is another cluster's.
    """
    state = request.state
    if state is not None:
        validate_cluster_id(state.cluster_id, live.cluster.id, request.cluster_name)
    moving = sorted(set(partitions) & live.moves.keys())
    back = {r: path for r in sorted(set(replicas)) if (path := _origin(live, r))}
    operations = [_cancelling(moving, live)] if moving else []
    operations += [relocation(CANCELLED, back, live)] if back else []
    fields = tuple(assess_placement_field(f) for op in operations for f in get_operation_type(op).fields(op))
    risk = find_highest_risk(fields, minimum=Risk.DISRUPTIVE)
    change = Change(CANCELLED, Action.UPDATE, Reason.ASKED, risk, fields)
    return Plan(
        project=request.project,
        env=request.env,
        cluster=ClusterRef(live.cluster.id, request.cluster_name),
        base=PlanBase(state.lineage if state else None, state.serial if state else 0),
        summary=Summary(update=1 if operations else 0),
        changes=(change,) if operations else (),
        operations=tuple(operations),
        diagnostics=tuple(_cancel_grown(p, live) for p in moving if _cancel_grows(p, live)),
    )


def _cancel_grows(partition: TopicPartition, live: KafkaState) -> bool:
    move = live.moves[partition]
    return len(move.origin) > len(move.target)


def _cancel_grown(partition: TopicPartition, live: KafkaState) -> Diagnostic:
    move = live.moves[partition]
    return warning(
        "cancel-grows",
        "Cancelling leaves more replicas than are wanted",
        f"{partition} was sent elsewhere more than once, or is to lose replicas: a cancel leaves all of "
        f"{list(move.origin)}, and it is heading for {list(move.target)}.",
        hint="kdeclare rollback goes back to the recorded list instead.",
        resource=str(CANCELLED),
        subject=str(partition),
    )


def _origin(live: KafkaState, replica: Replica) -> str | None:
    """The log directory that a replica is about to leave; one that a cancelled move was adding goes."""
    move = live.moves.get(replica[0])
    dirs = live.dirs.get(replica)
    if dirs is None or dirs.arriving is None or (move and replica[1] in move.adding):
        return None
    return dirs.path


def _cancelling(moving: Collection[TopicPartition], live: KafkaState) -> Operation:
    heading: dict[str, JsonValue] = {str(p): list(live.moves[p].target) for p in moving}
    stays = MovesArgs({str(p): live.moves[p].origin for p in moving})
    expect: Mapping[str, JsonValue] = heading | build_identity_view(collect_topics(heading), live)
    bare = Operation(f"{_CANCEL.name}:{CANCELLED}", _CANCEL.name, CANCELLED, stays, expect)
    return with_inverse(_CANCEL, bare)
