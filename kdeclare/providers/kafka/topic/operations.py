"""The operations of a topic's change, and the edges among them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.changes import Action, Change
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.operation_type import with_inverse
from kdeclare.core.operations import Operation
from kdeclare.providers.kafka.config.config_ops import by_occurrence, config_fields, config_operations, key_of
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState, Topic
from kdeclare.providers.kafka.operations.arguments import (
    CreateTopicArgs,
    DeleteTopicArgs,
    IncreasePartitionsArgs,
    make_config_argument,
)
from kdeclare.providers.kafka.operations.delete_topic import DeleteTopic
from kdeclare.providers.kafka.operations.topics import CreateTopic, IncreasePartitions
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import ReassignPartitions
from kdeclare.providers.kafka.reassignment.placing import Placer, Wish
from kdeclare.providers.kafka.risks import NO_FEWER_PARTITIONS, TOPIC_DELETED
from kdeclare.providers.kafka.topic.diff import MIN_ISR, raises_min_isr, true_replicas
from kdeclare.providers.kafka.topic.spec import TopicBody
from kdeclare.providers.kafka.topic_identity import identities

_CREATE, _DELETE = CreateTopic(), DeleteTopic()
_INCREASE, _REASSIGN = IncreasePartitions(), ReassignPartitions()

Assignment = Sequence[tuple[int, ...]]

_ASSIGNMENTS = "assignments."


def topic_operations(
    change: Change, body: TopicBody | None, live: KafkaState, owned: Json, place: Placer
) -> tuple[Operation, ...]:
    """Create, delete, or: configs, more partitions and reassignments in the order that is safe."""
    if change.action is Action.CREATE and body is not None:
        return (_create(change, body),)
    topic = live.topics.get(change.id.name)
    if topic is None:
        return ()
    if change.action is Action.DELETE:
        return (_delete(change.id, topic),)
    return _update(change, body or TopicBody(), live, topic, owned, place)


def _create(change: Change, body: TopicBody) -> Operation:
    assignments = {str(number): replicas for number, replicas in _assigned(change).items()}
    # the last field of a key holds its end value: parts are resolved, as the list is new
    configs = ((key_of(field), make_config_argument(field.after)) for field in config_fields(change.fields))
    op = Operation(
        id=f"{_CREATE.name}:{change.id}",
        verb=_CREATE.name,
        resource=change.id,
        args=CreateTopicArgs(
            change.id.name,
            partitions=None if assignments else body.partitions,
            replication_factor=None if assignments else body.replication_factor,
            assignments=assignments or None,
            configs={key: value for key, value in configs if isinstance(value, str | tuple)},
        ),
        expect=CreateTopic.ABSENT,
    )
    return with_inverse(_CREATE, op)


def _delete(resource: ResourceId, topic: Topic) -> Operation:
    op = Operation(
        id=f"{_DELETE.name}:{resource}",
        verb=_DELETE.name,
        resource=resource,
        args=DeleteTopicArgs(topic.name, topic.topic_id or None),
        expect={"topic": topic.topic_id},
        irreversible=TOPIC_DELETED,
    )
    return with_inverse(_DELETE, op)


def _update(
    change: Change, body: TopicBody, live: KafkaState, topic: Topic, owned: Json, place: Placer
) -> tuple[Operation, ...]:
    current = true_replicas(live, topic)
    fields = {f.path.split(".")[0]: f for f in change.fields}
    total = max(body.partitions or 0, len(current))
    target: Assignment | None = None
    if "assignments" in fields:
        assigned = _assigned(change)
        target = [assigned.get(n) or current[n] for n in range(total)]
    elif fields.keys() & {"replicationFactor", "partitions"}:
        factor = body.replication_factor if "replicationFactor" in fields else None
        target = place(live.cluster.brokers, {topic.name: current}, Wish(total, factor))[topic.name]
    increase = _increase(change.id, topic, current, total, target, live)
    start = [*current, *_added(increase)]
    moves = _reassign(change.id, topic.name, start, target, increase, live) if target else ()
    return _ordered(change, increase, moves, owned, live)


def _assigned(change: Change) -> dict[int, tuple[int, ...]]:
    """The partitions whose replicas are named, declared or placed by a strategy."""
    named = [f for f in change.fields if f.path.startswith(_ASSIGNMENTS)]
    return {int(f.path.removeprefix(_ASSIGNMENTS)): tuple(f.after) for f in named}


def _increase(
    resource: ResourceId,
    topic: Topic,
    current: Assignment,
    total: int,
    target: Assignment | None,
    live: KafkaState,
) -> Operation | None:
    count = len(current)
    if total <= count:
        return None
    added = None
    if target is not None:
        # Kafka wants as many replicas as partition 0 has now; the reassignment brings the rest
        brokers = [b.id for b in live.cluster.brokers if not b.fenced]
        added = tuple(_resized(replicas, len(current[0]), brokers) for replicas in target[count:])
    op = Operation(
        id=f"{_INCREASE.name}:{resource}",
        verb=_INCREASE.name,
        resource=resource,
        args=IncreasePartitionsArgs(topic.name, total, added),
        expect={"partitions": count} | identities([topic.name], live),
        irreversible=NO_FEWER_PARTITIONS,
    )
    return with_inverse(_INCREASE, op)


def _added(increase: Operation | None) -> list[tuple[int, ...]]:
    assignments = get_arguments(increase, IncreasePartitionsArgs).assignments if increase else None
    return list(assignments or ())


def _resized(replicas: tuple[int, ...], size: int, brokers: Sequence[int]) -> tuple[int, ...]:
    spare = (b for b in brokers if b not in replicas)
    return (*replicas, *spare)[:size]


def _reassign(
    resource: ResourceId,
    topic: str,
    start: Assignment,
    target: Assignment,
    increase: Operation | None,
    live: KafkaState,
) -> tuple[Operation, ...]:
    """Same size first and guarded; the guard is lifted only for partitions whose size is to change."""
    differing = {n: target[n] for n in range(len(start)) if tuple(start[n]) != tuple(target[n])}
    guarded = {n: t for n, t in differing.items() if len(t) == len(start[n])}
    resized = {n: t for n, t in differing.items() if len(t) != len(start[n])}
    groups: list[tuple[Mapping[int, tuple[int, ...]], bool]] = [(guarded, False), (resized, True)]
    operations: list[Operation] = []
    for targets, allow in groups:
        if not targets:
            continue
        suffix = f"#{len(operations) + 1}" if operations else ""
        op = Operation(
            id=f"{_REASSIGN.name}:{resource}{suffix}",
            verb=_REASSIGN.name,
            resource=resource,
            args=ReassignArgs({f"{topic}-{n}": tuple(t) for n, t in targets.items()}, allow),
            expect={f"{topic}-{n}": list(start[n]) for n in targets} | identities([topic], live),
            needs={increase.id: "partitions before reassigning them"} if increase else {},
        )
        operations.append(with_inverse(_REASSIGN, op))
    return tuple(operations)


def _ordered(
    change: Change,
    increase: Operation | None,
    moves: tuple[Operation, ...],
    owned: Json,
    live: KafkaState,
) -> tuple[Operation, ...]:
    """min.insync.replicas goes down before the replication factor, and up after it."""
    fields = config_fields(change.fields)
    resized = [op for op in moves if get_arguments(op, ReassignArgs).allow_replication_factor_change]
    min_isr = [f for f in fields if resized and key_of(f) == MIN_ISR]
    late = [f for f in min_isr if raises_min_isr(f)]
    early = [f for f in min_isr if not raises_min_isr(f)]
    entity = ConfigResource(ConfigScope.TOPIC, change.id.name)
    stages = by_occurrence(f for f in fields if f not in late)
    configs = config_operations(change.id, entity, [*stages, late], owned, live)
    if late:
        because = {op.id: "raise the replication factor before min.insync.replicas" for op in resized}
        configs[-1] = replace(configs[-1], needs=because)
    if early:
        because = {configs[0].id: "lower min.insync.replicas before the replication factor"}
        moves = tuple(replace(op, needs={**op.needs, **because}) if op in resized else op for op in moves)
    return (*configs, *([increase] if increase else ()), *moves)
