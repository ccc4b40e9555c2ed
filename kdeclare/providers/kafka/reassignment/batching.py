"""How moves are gone about: in batches, under a throttle that goes again, with an election at the end.

Kinds say which partitions go where; here that becomes the part of the graph that a careful operator would
step through. What shares a pace is a *group*: all that one manifest moves, and all other moves together.
Groups with a throttle take turns, since a broker has one rate.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, info, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import type_of
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import observe
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import (
    get_replicas_before,
    get_targets,
    list_replicas,
    part,
    topics_of,
)
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.completion import MOVES, moves_replicas
from kdeclare.providers.kafka.reassignment.leftovers import Entries, Leftovers
from kdeclare.providers.kafka.reassignment.operations.arguments import (
    ReassignArgs,
    ThrottleArgs,
    find_group,
    find_pace,
)
from kdeclare.providers.kafka.reassignment.operations.elect import election
from kdeclare.providers.kafka.reassignment.operations.reassign import waiting
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle, SetThrottle, throttling
from kdeclare.providers.kafka.reassignment.pace import Pace

TOGETHER = ResourceId("Moves", "topics")
"""What stands for the resources of a group that are several."""

_SET, _CLEAR = SetThrottle(), ClearThrottle()

Batch = list[Operation]


@dataclass(frozen=True, slots=True)
class Group:
    """Moves that share a pace.

    name: what tells it from others. resource: what its own steps are on. awaits: the steps that wait for
    other people's moves.
    """

    name: str
    resource: ResourceId
    pace: Pace
    moves: tuple[Operation, ...]
    awaits: frozenset[str] = frozenset()

    def awaited(self, op: Operation) -> dict[str, str]:
        """The steps of that kind that one of its moves needs."""
        return {id_: why for id_, why in op.needs.items() if id_ in self.awaits}


def at_pace(
    operations: Sequence[Operation], cluster: Cluster, live: KafkaState, default: Pace, left: Leftovers
) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """All operations, the moves at their pace and in any order; and what should be known of it.

    default: of moves that say nothing else. left: what earlier runs have left in the cluster.
    Raises Fault when the cluster does not answer.
    """
    found = groups(operations, default)
    entities = {entity for group in found for entity in throttle_entries(group, live)}
    topics = topics_of(left.moves) if found else frozenset()
    seen = observe(cluster, throttles.query(entities, topics)) if entities or topics else live
    return paced(operations, found, live, seen, left)


def groups(operations: Iterable[Operation], default: Pace) -> tuple[Group, ...]:
    """The moves among the operations by group, in the order in which the groups take their turns."""
    found: dict[str, list[Operation]] = defaultdict(list)
    awaits: set[str] = set()
    for op in operations:
        if type_of(op).awaits is MOVES:
            awaits.add(op.id)
        if moves_replicas(op):
            found[find_group(op) or str(TOGETHER)].append(op)
    result = []
    for name, moves in sorted(found.items()):
        resources = {op.resource for op in moves}
        resource = moves[0].resource if len(resources) == 1 else TOGETHER
        pace = find_pace(moves[0]).over(default)
        result.append(Group(name, resource, pace, tuple(moves), frozenset(awaits)))
    return tuple(result)


def throttle_entries(group: Group, live: KafkaState) -> Entries:
    """All that throttles a group; empty where it is to have no throttle, or nothing is copied."""
    if group.pace.throttle is None:
        return {}
    return throttles.entries(_shifts(group, live), group.pace.throttle, live.cluster.serving)


def paced(
    operations: Sequence[Operation],
    found: Sequence[Group],
    live: KafkaState,
    seen: KafkaState,
    left: Leftovers,
) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """All operations, the moves at their pace; and what should be known of it.

    seen: the throttles that are there (`throttles.query` of all entries), and the moves of ``left``.
    """
    parts: dict[str, list[str]] = {}
    steps: list[Operation] = []
    said: list[Diagnostic] = []
    turn: Operation | None = None
    others = [op for op in operations if not moves_replicas(op)]
    declared = frozenset(claim for op in others for claim in type_of(op).produces(op))
    for group in found:
        batches = _in_turn([*_still_moving(group, seen, left), *_batches(group, parts)])
        moves = [op for batch in batches for op in batch]
        over = {op.id: "when all moves are over" for op in moves if moves_replicas(op)}
        missing = throttles.missing(throttle_entries(group, live), left.throttles, seen, declared)
        said += _findings(group, live, missing.foreign)
        waits = {turn.id: "one group of moves at a time"} if turn else {}
        if missing.entries or missing.relies_on:
            partitions = {p for op in group.moves for p in get_targets(op)}
            partitions.update(_sharing(missing.entries, seen, left))
            throttle = _throttle(group, missing, partitions, seen, over, waits)
            because = {throttle[0].id: "throttles before a move"}
            moves = [_with(op, because, {}) for op in moves]
            steps += throttle
            turn = throttle[-1] if missing.entries else turn
        elif group.pace.batch_size is not None:
            moves = [_with(op, {}, waits) for op in moves]
        if group is not found[-1] and group.pace.batch_size is not None and not missing.entries:
            before = {batches[-2][-1].id: "one batch at a time"} if len(batches) > 1 else {}
            turn = _barrier(batches[-1], len(batches) + 1, before, group.pace)
            steps.append(turn)
        elect = _election(group, live, over)
        steps += [*moves, *([elect] if elect else ())]
    return (*(_with_parts(op, parts) for op in others), *steps), said


def _with(op: Operation, needs: Mapping[str, str], follows: Mapping[str, str]) -> Operation:
    """A move with more edges; what only waits has its own."""
    if not moves_replicas(op):
        return op
    return replace(op, needs={**op.needs, **needs}, follows={**op.follows, **follows})


def _limit(pace: Pace) -> Pace | None:
    """How long a step of the group may wait; None where nothing is said."""
    return Pace(timeout_s=pace.timeout_s) if pace.timeout_s is not None else None


def _shifts(group: Group, live: KafkaState) -> Iterable[throttles.Shift]:
    for op in group.moves:
        after_it = bool(group.awaited(op))
        for name, target in get_targets(op).items():
            partition = TopicPartition.parse(name)
            before = get_replicas_before(op, name)
            move = None if after_it else live.moves.get(partition)  # one that is waited for is over by then
            yield throttles.shift(partition, before, move, target)


def _batches(group: Group, parts: dict[str, list[str]]) -> list[Batch]:
    """The moves, cut and packed so that no batch has more partitions than it may."""
    size = group.pace.batch_size
    paced = [_at_pace(op, group) for op in group.moves]
    if size is None:
        return [paced]
    batches: list[Batch] = [[]]
    room = size
    taken = {op.id for op in paced}
    for op in paced:
        names = list(get_targets(op))
        begin = 0
        while begin < len(names):
            if room == 0:
                batches.append([])
                room = size
            part = _part(op, names[begin : begin + room], parts, taken)
            batches[-1].append(part)
            begin += len(get_targets(part))
            room -= len(get_targets(part))
    return batches


def _at_pace(op: Operation, group: Group) -> Operation:
    if not group.pace:
        return op
    args = replace(get_arguments(op, ReassignArgs), pace=group.pace, group=group.name)
    return with_inverse(type_of(op), replace(op, args=args))


def _part(op: Operation, names: Sequence[str], parts: dict[str, list[str]], taken: set[str]) -> Operation:
    """The part of a move that is about some of its partitions.

    taken: ids that it cannot have; a rollback cuts anew what has been cut already.
    """
    known = parts.setdefault(op.id, [])
    free = (id_ for n in itertools.count(len(known) + 1) if (id_ := f"{op.id}/{n}") not in taken)
    id_ = next(free) if known else op.id
    taken.add(id_)
    known.append(id_)
    return replace(part(type_of(op), op, names), id=id_)


def _still_moving(group: Group, seen: KafkaState, left: Leftovers) -> list[Batch]:
    """What an earlier run has left moving is a batch, too; only where batches are asked for."""
    mine = {p for op in group.moves for p in get_targets(op)}
    flying = {p: seen.moves.get(TopicPartition.parse(p)) for p in left.moves if p not in mine}
    targets = {p: move.target for p, move in flying.items() if move is not None}
    if group.pace.batch_size is None or not targets:
        return []
    await_ = waiting(f"{group.name}#1", group.resource, targets, _limit(group.pace))
    return [[replace(await_, expect=list_replicas(targets))]]


def _in_turn(batches: list[Batch]) -> list[Batch]:
    """Each batch after the one before it, and after what of that one goes on although it was refused."""
    result = batches[:1]
    turn: dict[str, str] = {}
    for number, batch in enumerate(batches[1:], start=2):
        before = result[-1]
        pace = find_pace(batch[0])
        over = before[-1] if type_of(before[-1]).awaits is MOVES else _barrier(before, number, turn, pace)
        if over is not before[-1]:
            before.append(over)
        turn = {over.id: "one batch at a time"}
        result.append([_after(op, turn) for op in batch])
    return result


def _barrier(before: Batch, number: int, turn: Mapping[str, str], pace: Pace) -> Operation:
    """Expects nothing: that the batch before it failed is no reason for the next one not to begin."""
    targets = {name: target for op in before for name, target in get_targets(op).items()}
    group = find_group(before[0]) or TOGETHER
    follows = {op.id: "one batch at a time" for op in before}
    await_ = waiting(f"{group}#{number}", before[0].resource, targets, _limit(pace))
    return replace(await_, needs=turn, follows=follows)


def _after(op: Operation, needs: Mapping[str, str]) -> Operation:
    pause = find_pace(op).pause_s
    args = replace(get_arguments(op, ReassignArgs), pause_s=pause) if pause else op.args
    return replace(op, args=args, needs={**op.needs, **needs})


def _sharing(entries: Entries, seen: KafkaState, left: Leftovers) -> Iterable[str]:
    """What an earlier run has left moving, where its rates become others: they go when both are over."""
    changed = any(
        key in throttles.RATES and key in left.throttles.get(e, {}) for e in entries for key in entries[e]
    )
    return [p for p in left.moves if changed and TopicPartition.parse(p) in seen.moves]


def _throttle(
    group: Group,
    missing: throttles.Missing,
    partitions: Collection[str],
    seen: KafkaState,
    over: Mapping[str, str],
    waits: Mapping[str, str],
) -> list[Operation]:
    """The steps around moves; ``waits``: the end of the group before it.

    What takes it away expects nothing, so that it can be done again when its outcome is not known. Where
    all is there already, what sets it only sees to it that it still is.
    """
    args = ThrottleArgs({}, tuple(sorted(partitions)), _limit(group.pace))
    relied = {e: dict(keys) for e, keys in missing.relies_on.items()}
    more = replace(args, relies_on=relied or None)
    awaited = {id_: why for op in group.moves for id_, why in group.awaited(op).items()}
    set_ = throttling(_SET, group.name, group.resource, missing.entries, more)
    set_ = replace(set_, expect=_SET.view(set_, LiveState(seen)), needs=awaited, follows=waits)
    if not missing.entries:
        return [set_]
    clear = throttling(_CLEAR, group.name, group.resource, missing.entries, args)
    return [set_, replace(clear, follows={set_.id: "takes away what was set", **over})]


def _election(group: Group, live: KafkaState, over: Mapping[str, str]) -> Operation | None:
    """An election for the partitions that another broker leads than is preferred afterwards."""
    preferred: dict[str, int] = {}
    for op in group.moves:
        for name, target in get_targets(op).items():
            topic, number = TopicPartition.parse(name)
            there = live.topics.get(topic)
            if there is None or number >= len(there.partitions):
                continue
            if there.partitions[number].leader != target[0]:
                preferred[name] = target[0]
    if not preferred:
        return None
    return replace(election(group.name, group.resource, preferred, _limit(group.pace)), follows=over)


def _with_parts(op: Operation, parts: Mapping[str, list[str]]) -> Operation:
    """Whoever needs a move that was cut needs all of its parts."""
    if not any(len(parts.get(id_, ())) > 1 for id_ in op.needs):
        return op
    needs = {part: why for id_, why in op.needs.items() for part in parts.get(id_, [id_])}
    return replace(op, needs=needs)


def _findings(group: Group, live: KafkaState, foreign: Mapping[str, str]) -> Iterable[Diagnostic]:
    resource = str(group.resource)
    copied = sum(bool(shift.destinations) for shift in _shifts(group, live))
    if group.pace.throttle is None and copied:
        yield info(
            "no-throttle",
            "Replicas move without a throttle",
            f"{copied} partition{'s are' if copied > 1 else ' is'} copied as fast as the brokers can.",
            hint="State a throttle in the Reassignment, or under reassignments in the project file.",
            resource=resource,
        )
    for rate in sorted(set(foreign.values())):
        names = ", ".join(entity.partition("/")[2] for entity in sorted(foreign) if foreign[entity] == rate)
        yield warning(
            "foreign-throttle",
            "Someone else's throttle holds",
            f"A replication throttle of {rate} bytes a second that kdeclare did not set is on broker "
            f"{names}; it is left alone, and holds there for these moves, which are to have "
            f"{group.pace.throttle}.",
            hint="Have it taken away where nobody needs it any more.",
            resource=resource,
            subject=names,
        )
