"""Split replica moves into batches with a temporary throttle and a final preferred leader election.

The kinds determine the target of each partition. This module builds the steps that a careful operator would
take to reach the targets.

Moves that share a pace form a *group*. Each manifest that sets a pace has its own group. One more group
contains the moves of all manifests that do not set a pace. Groups with a throttle run one after the other,
because a broker has only one throttle rate.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, info, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import observe
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import (
    collect_topics,
    get_replicas_before,
    get_targets,
    list_replicas,
    select_partitions,
)
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.completion import MOVE_COMPLETION, is_reassignment
from kdeclare.providers.kafka.reassignment.operations.arguments import (
    ReassignArgs,
    ThrottleArgs,
    find_group,
    get_pace,
)
from kdeclare.providers.kafka.reassignment.operations.elect import build_elect_operation
from kdeclare.providers.kafka.reassignment.operations.reassign import build_await_operation
from kdeclare.providers.kafka.reassignment.operations.throttle import (
    ClearThrottle,
    SetThrottle,
    build_throttle_operation,
)
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import PendingMoveCleanup, ThrottleEntries
from kdeclare.providers.kafka.reassignment.shared_resource import SHARED_RESOURCE

_SET_THROTTLE, _CLEAR_THROTTLE = SetThrottle(), ClearThrottle()

Batch = list[Operation]


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """Moves that share a pace.

    name: the unique name of the group.
    resource: the resource that is shown for the steps of the group.
    awaits: the ids of the steps that wait for in-flight moves of other clients.
    """

    name: str
    resource: ResourceId
    pace: Pace
    moves: tuple[Operation, ...]
    awaits: frozenset[str] = frozenset()

    def awaited(self, op: Operation) -> dict[str, str]:
        """Return the steps in ``awaits`` that ``op`` depends on: the id of each step, and the reason."""
        return {id_: why for id_, why in op.needs.items() if id_ in self.awaits}


def batch_moves(
    operations: Sequence[Operation],
    cluster: Cluster,
    live: KafkaState,
    default_pace: Pace,
    move_cleanup: PendingMoveCleanup,
) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """Split the moves into batches. Return all operations in no particular order, and diagnostics.

    default_pace: the pace of moves whose manifest sets no pace. move_cleanup: the pending cleanup of earlier
    runs. Raises Fault if the cluster does not respond.
    """
    move_groups = group_moves(operations, default_pace)
    entities = {entity for group in move_groups for entity in build_throttle_entries(group, live)}
    topics = collect_topics(move_cleanup.moves) if move_groups else frozenset()
    throttle_state = (
        observe(cluster, throttles.build_selection(entities, topics)) if entities or topics else live
    )
    return build_move_steps(operations, move_groups, live, throttle_state, move_cleanup)


def group_moves(operations: Iterable[Operation], default_pace: Pace) -> tuple[MoveGroup, ...]:
    """Group the operations that move replicas. Return the groups in execution order."""
    moves_by_group: dict[str, list[Operation]] = defaultdict(list)
    await_ids: set[str] = set()
    for op in operations:
        if get_operation_type(op).awaits is MOVE_COMPLETION:
            await_ids.add(op.id)
        if is_reassignment(op):
            moves_by_group[find_group(op) or str(SHARED_RESOURCE)].append(op)
    result = []
    for name, moves in sorted(moves_by_group.items()):
        resources = {op.resource for op in moves}
        resource = moves[0].resource if len(resources) == 1 else SHARED_RESOURCE
        pace = get_pace(moves[0]).over(default_pace)
        result.append(MoveGroup(name, resource, pace, tuple(moves), frozenset(await_ids)))
    return tuple(result)


def build_throttle_entries(group: MoveGroup, live: KafkaState) -> ThrottleEntries:
    """Return the throttle entries of a group.

    The result is empty if the group has no throttle or copies no replicas.
    """
    if group.pace.throttle is None:
        return {}
    return throttles.build_entries(
        _list_transfers(group, live), group.pace.throttle, live.cluster.serving_broker_ids
    )


def build_move_steps(
    operations: Sequence[Operation],
    move_groups: Sequence[MoveGroup],
    live: KafkaState,
    throttle_state: KafkaState,
    move_cleanup: PendingMoveCleanup,
) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """Build the steps of all groups: throttles, batches of moves, and elections.

    Return the steps together with all operations that move no replicas, and diagnostics about the moves.
    throttle_state: the current throttles (see `throttles.build_selection`), and the current state of the
        moves in ``move_cleanup``.
    """
    part_ids: dict[str, list[str]] = {}
    steps: list[Operation] = []
    diagnostics: list[Diagnostic] = []
    previous_step: Operation | None = None
    other_operations = [op for op in operations if not is_reassignment(op)]
    declared_claims = frozenset(
        claim for op in other_operations for claim in get_operation_type(op).list_produced_claims(op)
    )
    for group in move_groups:
        batches = _order_batches(
            [*_build_pending_batch(group, throttle_state, move_cleanup), *_split_batches(group, part_ids)]
        )
        moves = [op for batch in batches for op in batch]
        after_moves = {op.id: "when all moves have finished" for op in moves if is_reassignment(op)}
        missing_throttles = throttles.find_missing(
            build_throttle_entries(group, live), move_cleanup.throttles, throttle_state, declared_claims
        )
        diagnostics += _check_throttle(group, live, missing_throttles.foreign_rates)
        after_previous = {previous_step.id: "one group of moves at a time"} if previous_step else {}
        if missing_throttles.entries or missing_throttles.relies_on:
            partitions = {p for op in group.moves for p in get_targets(op)}
            partitions.update(_find_shared_moves(missing_throttles.entries, throttle_state, move_cleanup))
            throttle_steps = _build_throttle_steps(
                group, missing_throttles, partitions, throttle_state, after_moves, after_previous
            )
            throttle_needs = {throttle_steps[0].id: "throttles before a move"}
            moves = [_with_edges(op, throttle_needs, {}) for op in moves]
            steps += throttle_steps
            previous_step = throttle_steps[-1] if missing_throttles.entries else previous_step
        elif group.pace.batch_size is not None:
            moves = [_with_edges(op, {}, after_previous) for op in moves]
        if (
            group is not move_groups[-1]
            and group.pace.batch_size is not None
            and not missing_throttles.entries
        ):
            after_batch = {batches[-2][-1].id: "one batch at a time"} if len(batches) > 1 else {}
            previous_step = _build_barrier(batches[-1], len(batches) + 1, after_batch, group.pace)
            steps.append(previous_step)
        election = _build_election(group, live, after_moves)
        steps += [*moves, *([election] if election else ())]
    return (*(_with_parts(op, part_ids) for op in other_operations), *steps), diagnostics


def _with_edges(op: Operation, needs: Mapping[str, str], follows: Mapping[str, str]) -> Operation:
    """Add dependencies to an operation that moves replicas. Return all other operations unchanged."""
    if not is_reassignment(op):
        return op
    return replace(op, needs={**op.needs, **needs}, follows={**op.follows, **follows})


def _build_timeout_pace(pace: Pace) -> Pace | None:
    """Return a pace that has only the timeout of ``pace``; None if ``pace`` has no timeout."""
    return Pace(timeout_s=pace.timeout_s) if pace.timeout_s is not None else None


def _list_transfers(group: MoveGroup, live: KafkaState) -> Iterable[throttles.ReplicaTransfer]:
    for op in group.moves:
        is_awaited = bool(group.awaited(op))
        for name, target in get_targets(op).items():
            partition = TopicPartition.parse(name)
            replicas_before = get_replicas_before(op, name)
            move = (
                None if is_awaited else live.moves.get(partition)
            )  # this group starts only after an awaited move has finished
            yield throttles.build_transfer(partition, replicas_before, move, target)


def _split_batches(group: MoveGroup, part_ids: dict[str, list[str]]) -> list[Batch]:
    batch_size = group.pace.batch_size
    moves = [_with_pace(op, group) for op in group.moves]
    if batch_size is None:
        return [moves]
    batches: list[Batch] = [[]]
    free_slots = batch_size
    used_ids = {op.id for op in moves}
    for op in moves:
        names = list(get_targets(op))
        start = 0
        while start < len(names):
            if free_slots == 0:
                batches.append([])
                free_slots = batch_size
            move_part = _select_part(op, names[start : start + free_slots], part_ids, used_ids)
            batches[-1].append(move_part)
            start += len(get_targets(move_part))
            free_slots -= len(get_targets(move_part))
    return batches


def _with_pace(op: Operation, group: MoveGroup) -> Operation:
    if not group.pace:
        return op
    args = replace(get_arguments(op, ReassignArgs), pace=group.pace, group=group.name)
    return with_inverse(get_operation_type(op), replace(op, args=args))


def _select_part(
    op: Operation, names: Sequence[str], part_ids: dict[str, list[str]], used_ids: set[str]
) -> Operation:
    """Return a copy of a move that contains only the partitions in ``names``.

    used_ids: the ids that other moves already have. The copy gets a different id.
    """
    own_ids = part_ids.setdefault(op.id, [])
    free_ids = (id_ for n in itertools.count(len(own_ids) + 1) if (id_ := f"{op.id}/{n}") not in used_ids)
    id_ = next(free_ids) if own_ids else op.id
    used_ids.add(id_)
    own_ids.append(id_)
    return replace(select_partitions(get_operation_type(op), op, names), id=id_)


def _build_pending_batch(
    group: MoveGroup, throttle_state: KafkaState, move_cleanup: PendingMoveCleanup
) -> list[Batch]:
    """Build a batch that waits for the moves that an earlier run left in flight.

    Return no batch if the pace of the group has no batch size: the group then does not wait for these moves.
    """
    own_partitions = {p for op in group.moves for p in get_targets(op)}
    moves_in_flight = {
        p: throttle_state.moves.get(TopicPartition.parse(p))
        for p in move_cleanup.moves
        if p not in own_partitions
    }
    targets = {p: move.target for p, move in moves_in_flight.items() if move is not None}
    if group.pace.batch_size is None or not targets:
        return []
    await_operation = build_await_operation(
        f"{group.name}#1", group.resource, targets, _build_timeout_pace(group.pace)
    )
    return [[replace(await_operation, expect=list_replicas(targets))]]


def _order_batches(batches: list[Batch]) -> list[Batch]:
    """Make each batch wait for all moves of the previous batch.

    If an operation fails for some of its partitions, the next batch still waits for the moves of its other
    partitions.
    """
    result = batches[:1]
    predecessors: dict[str, str] = {}
    for number, batch in enumerate(batches[1:], start=2):
        previous_batch = result[-1]
        pace = get_pace(batch[0])
        barrier = (
            previous_batch[-1]
            if get_operation_type(previous_batch[-1]).awaits is MOVE_COMPLETION
            else _build_barrier(previous_batch, number, predecessors, pace)
        )
        if barrier is not previous_batch[-1]:
            previous_batch.append(barrier)
        predecessors = {barrier.id: "one batch at a time"}
        result.append([_with_predecessors(op, predecessors) for op in batch])
    return result


def _build_barrier(
    previous_batch: Batch, number: int, predecessors: Mapping[str, str], pace: Pace
) -> Operation:
    """Build the step that waits for a batch.

    The step has no expectations, so that the next batch runs even if the previous batch fails.
    """
    targets = {name: target for op in previous_batch for name, target in get_targets(op).items()}
    group = find_group(previous_batch[0]) or SHARED_RESOURCE
    follows = {op.id: "one batch at a time" for op in previous_batch}
    await_operation = build_await_operation(
        f"{group}#{number}", previous_batch[0].resource, targets, _build_timeout_pace(pace)
    )
    return replace(await_operation, needs=predecessors, follows=follows)


def _with_predecessors(op: Operation, needs: Mapping[str, str]) -> Operation:
    pause = get_pace(op).pause_s
    args = replace(get_arguments(op, ReassignArgs), pause_s=pause) if pause else op.args
    return replace(op, args=args, needs={**op.needs, **needs})


def _find_shared_moves(
    entries: ThrottleEntries, throttle_state: KafkaState, move_cleanup: PendingMoveCleanup
) -> Iterable[str]:
    """Return the partitions that an earlier run is still moving under a throttle rate that this run changes.

    If this run changes no such rate, return no partitions. The rates are removed once the moves of both runs
    have finished.
    """
    has_changed_rates = any(
        key in throttles.RATE_KEYS and key in move_cleanup.throttles.get(e, {})
        for e in entries
        for key in entries[e]
    )
    return [
        p for p in move_cleanup.moves if has_changed_rates and TopicPartition.parse(p) in throttle_state.moves
    ]


def _build_throttle_steps(
    group: MoveGroup,
    missing_throttles: throttles.MissingThrottles,
    partitions: Collection[str],
    throttle_state: KafkaState,
    after_moves: Mapping[str, str],
    after_previous: Mapping[str, str],
) -> list[Operation]:
    """Build the step that sets a throttle and the step that clears the throttle.

    after_previous: the dependency on the previous group.

    The clearing step has no expectations, so that the step can be repeated if its outcome is unknown. If the
    cluster already has all entries, there is no clearing step. The setting step then changes nothing and only
    checks that the entries are still set.
    """
    args = ThrottleArgs({}, tuple(sorted(partitions)), _build_timeout_pace(group.pace))
    relied_rates = {e: dict(keys) for e, keys in missing_throttles.relies_on.items()}
    set_args = replace(args, relies_on=relied_rates or None)
    awaited_moves = {id_: why for op in group.moves for id_, why in group.awaited(op).items()}
    set_operation = build_throttle_operation(
        _SET_THROTTLE, group.name, group.resource, missing_throttles.entries, set_args
    )
    set_operation = replace(
        set_operation,
        expect=_SET_THROTTLE.compute_view(set_operation, LiveState(throttle_state)),
        needs=awaited_moves,
        follows=after_previous,
    )
    if not missing_throttles.entries:
        return [set_operation]
    clear_operation = build_throttle_operation(
        _CLEAR_THROTTLE, group.name, group.resource, missing_throttles.entries, args
    )
    return [
        set_operation,
        replace(
            clear_operation, follows={set_operation.id: "removes the throttle that was set", **after_moves}
        ),
    ]


def _build_election(group: MoveGroup, live: KafkaState, after_moves: Mapping[str, str]) -> Operation | None:
    """Build an election for the partitions whose current leader is not the first target replica."""
    preferred: dict[str, int] = {}
    for op in group.moves:
        for name, target in get_targets(op).items():
            topic, number = TopicPartition.parse(name)
            topic_state = live.topics.get(topic)
            if topic_state is None or number >= len(topic_state.partitions):
                continue
            if topic_state.partitions[number].leader != target[0]:
                preferred[name] = target[0]
    if not preferred:
        return None
    return replace(
        build_elect_operation(group.name, group.resource, preferred, _build_timeout_pace(group.pace)),
        follows=after_moves,
    )


def _with_parts(op: Operation, part_ids: Mapping[str, list[str]]) -> Operation:
    """If ``op`` depends on a move that was split into parts, make ``op`` depend on all parts."""
    if not any(len(part_ids.get(id_, ())) > 1 for id_ in op.needs):
        return op
    needs = {part: why for id_, why in op.needs.items() for part in part_ids.get(id_, [id_])}
    return replace(op, needs=needs)


def _check_throttle(
    group: MoveGroup, live: KafkaState, foreign_rates: Mapping[str, str]
) -> Iterable[Diagnostic]:
    resource = str(group.resource)
    copied_count = sum(bool(shift.destinations) for shift in _list_transfers(group, live))
    if group.pace.throttle is None and copied_count:
        yield info(
            "no-throttle",
            "Moves without a throttle",
            f"The replicas of {copied_count} partition{'s' if copied_count > 1 else ''} are copied as fast "
            "as the brokers allow.",
            hint="Set 'throttle' in the Reassignment, or under 'reassignments' in the project file.",
            resource=resource,
        )
    for rate in sorted(set(foreign_rates.values())):
        brokers = [
            entity.partition("/")[2] for entity in sorted(foreign_rates) if foreign_rates[entity] == rate
        ]
        names = ", ".join(brokers)
        yield warning(
            "foreign-throttle",
            "Throttle set by another client",
            f"Another client set a replication throttle of {rate} bytes per second on "
            f"broker{'s' if len(brokers) > 1 else ''} {names}. kdeclare leaves this throttle unchanged, so "
            f"the moves do not use the requested {group.pace.throttle} bytes per second.",
            hint="If the throttle is no longer needed, remove it with kafka-configs.",
            resource=resource,
            subject=names,
        )
