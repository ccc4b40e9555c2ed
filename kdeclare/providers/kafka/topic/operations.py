"""Build the operations of a topic change with their dependencies, and handle colliding and renamed topics.

Kafka cannot rename topics. If the name in a manifest changes, a new, empty topic is created.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, denied, error, warning
from kdeclare.core.jsontypes import as_ints, dump_canonical_json
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Action, Change, Reason
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET
from kdeclare.providers.kafka.config.config_ops import (
    build_config_operations,
    filter_config_fields,
    get_config_key,
    group_by_occurrence,
)
from kdeclare.providers.kafka.config.config_record import get_applied
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, is_topic
from kdeclare.providers.kafka.live import KafkaState, Topic
from kdeclare.providers.kafka.operations.arguments import (
    DeleteTopicArgs,
    make_config_argument,
)
from kdeclare.providers.kafka.operations.delete_topic import DeleteTopic
from kdeclare.providers.kafka.operations.kafka_operation_type import build_identity_view
from kdeclare.providers.kafka.operations.topics import CreateTopic, IncreasePartitions, list_overrides
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest, Placer
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.providers.kafka.risks import NO_FEWER_PARTITIONS, TOPIC_DELETED
from kdeclare.providers.kafka.topic.diff import MIN_ISR_KEY, is_min_isr_increase, list_target_replicas
from kdeclare.providers.kafka.topic.record import TopicRecord, narrow_topic
from kdeclare.providers.kafka.topic.spec import TopicBody

_CREATE, _DELETE = CreateTopic(), DeleteTopic()
_INCREASE = IncreasePartitions()

ReplicaLists = Sequence[tuple[int, ...]]

_ASSIGNMENTS_PREFIX = "assignments."


def build_topic_operations(
    change: Change, body: TopicBody | None, live: KafkaState, owned: TopicRecord | None, placer: Placer
) -> tuple[Operation, ...]:
    """Build the operations that create, delete or update a topic.

    The operations of an update are in a safe order.
    """
    if change.action is Action.CREATE and body is not None:
        return (_build_creation(change, body),)
    topic = live.topics.get(change.id.name)
    if topic is None:
        return ()
    if change.action is Action.DELETE:
        return (_build_deletion(change.id, topic, live),)
    return _build_update(change, body or TopicBody(), live, topic, owned, placer)


def _build_creation(change: Change, body: TopicBody) -> Operation:
    assignments = _collect_assignments(change)
    # a list patch can have several fields with one key; `after` of the last field is the final value
    configs = (
        (get_config_key(field), make_config_argument(field.after))
        for field in filter_config_fields(change.fields)
    )
    args = NewTopic(
        change.id.name,
        partitions=None if assignments else body.partitions,
        replication_factor=None if assignments else body.replication_factor,
        assignments=assignments or None,
        configs={key: value for key, value in configs if isinstance(value, str | tuple)},
    )
    return Operation(
        id=f"{_CREATE.name}:{change.id}",
        verb=_CREATE.name,
        resource=change.id,
        args=args,
        expect=CreateTopic.ABSENT,
        inverse=Inverse(CreateTopic.UNDO_NAME, _CREATE.build_undo(args, allow_data_loss=False)),
    )


def _build_deletion(resource: ResourceId, topic: Topic, live: KafkaState) -> Operation:
    op = Operation(
        id=f"{_DELETE.name}:{resource}",
        verb=_DELETE.name,
        resource=resource,
        args=DeleteTopicArgs(topic.name, topic.topic_id or None, before=_record_topic(topic, live)),
        expect={"topic": topic.topic_id},
        irreversible=TOPIC_DELETED,
    )
    return with_inverse(_DELETE, op)


def _record_topic(topic: Topic, live: KafkaState) -> NewTopic | None:
    """Return the arguments for creating a topic again after its deletion.

    Return None if the replicas or configs of the topic are unknown. Throttles are left out, because they
    belong to reassignments, which end when the topic is deleted.
    """
    resource = ConfigResource(ConfigScope.TOPIC, topic.name)
    replicas = list_target_replicas(live, topic)
    if resource not in live.configs or not all(replicas):
        return None
    configs = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in sorted(list_overrides(topic.name, live).items())
        if key not in NEVER_RESET and value != SENSITIVE_MASK
    }
    return NewTopic(topic.name, None, None, dict(enumerate(replicas)), configs)


def _build_update(
    change: Change, body: TopicBody, live: KafkaState, topic: Topic, owned: TopicRecord | None, placer: Placer
) -> tuple[Operation, ...]:
    current = list_target_replicas(live, topic)
    fields = {f.path.split(".")[0]: f for f in change.fields}
    total = max(body.partitions or 0, len(current))
    target: ReplicaLists | None = None
    if "assignments" in fields:
        assignments = _collect_assignments(change)
        target = [assignments.get(n) or current[n] for n in range(total)]
    elif fields.keys() & {"replicationFactor", "partitions"}:
        factor = body.replication_factor if "replicationFactor" in fields else None
        target = placer(live.cluster.brokers, {topic.name: current}, PlacementRequest(total, factor))[
            topic.name
        ]
    increase = _build_increase(change.id, topic, current, total, target, live)
    replicas_before = [*current, *_list_added_replicas(increase)]
    moves: tuple[Operation, ...] = ()
    resizing: tuple[Operation, ...] = ()
    if target is not None:  # few changes move replicas
        from kdeclare.providers.kafka.reassignment.topic_moves import build_topic_moves

        moves, resizing = build_topic_moves(change.id, topic.name, replicas_before, target, increase, live)
    return _order_operations(change, increase, moves, resizing, owned, live)


def _collect_assignments(change: Change) -> dict[int, tuple[int, ...]]:
    assignment_fields = [f for f in change.fields if f.path.startswith(_ASSIGNMENTS_PREFIX)]
    return {int(f.path.removeprefix(_ASSIGNMENTS_PREFIX)): as_ints(f.after) for f in assignment_fields}


def _build_increase(
    resource: ResourceId,
    topic: Topic,
    current: ReplicaLists,
    total: int,
    target: ReplicaLists | None,
    live: KafkaState,
) -> Operation | None:
    count = len(current)
    if total <= count:
        return None
    added_replicas = None
    if target is not None:
        # a new partition must have as many replicas as partition 0 has now; the reassignment then resizes it
        brokers = [b.id for b in live.cluster.brokers if not b.fenced]
        added_replicas = tuple(
            _resize_replicas(replicas, len(current[0]), brokers) for replicas in target[count:]
        )
    op = Operation(
        id=f"{_INCREASE.name}:{resource}",
        verb=_INCREASE.name,
        resource=resource,
        args=NewPartitions(topic.name, total, added_replicas),
        expect={"partitions": count} | build_identity_view([topic.name], live),
        irreversible=NO_FEWER_PARTITIONS,
    )
    return with_inverse(_INCREASE, op)


def _list_added_replicas(increase: Operation | None) -> list[tuple[int, ...]]:
    assignments = get_arguments(increase, NewPartitions).assignments if increase else None
    return list(assignments or ())


def _resize_replicas(replicas: tuple[int, ...], size: int, brokers: Sequence[int]) -> tuple[int, ...]:
    spare_brokers = (b for b in brokers if b not in replicas)
    return (*replicas, *spare_brokers)[:size]


def _order_operations(
    change: Change,
    increase: Operation | None,
    moves: tuple[Operation, ...],
    resizing: tuple[Operation, ...],
    owned: TopicRecord | None,
    live: KafkaState,
) -> tuple[Operation, ...]:
    """Order operations: min.insync.replicas is lowered before the replication factor, and raised after it.

    resizing: the reassignments that change the replication factor.
    """
    fields = filter_config_fields(change.fields)
    min_isr_fields = [f for f in fields if resizing and get_config_key(f) == MIN_ISR_KEY]
    min_isr_increases = [f for f in min_isr_fields if is_min_isr_increase(f)]
    min_isr_decreases = [f for f in min_isr_fields if not is_min_isr_increase(f)]
    entity = ConfigResource(ConfigScope.TOPIC, change.id.name)
    stages = group_by_occurrence(f for f in fields if f not in min_isr_increases)
    identity = build_identity_view([entity.name], live)
    configs = build_config_operations(
        change.id, entity, [*stages, min_isr_increases], get_applied(owned), identity
    )
    if min_isr_increases:
        reasons = {op.id: "raise the replication factor before min.insync.replicas" for op in resizing}
        configs[-1] = replace(configs[-1], needs=reasons)
    if min_isr_decreases:
        reasons = {configs[0].id: "lower min.insync.replicas before the replication factor"}
        resizing = tuple(replace(op, needs={**op.needs, **reasons}) for op in resizing)
    return (*configs, *([increase] if increase else ()), *moves, *resizing)


RENAME = "rename"
NAME_COLLISION = "name-collision"

_MIN_SIMILARITY = 0.6
"""The minimum similarity of two topic names, the same as the default cutoff of difflib.get_close_matches."""


def check_colliding_names(desired: Sequence[DesiredResource]) -> Iterator[Diagnostic]:
    """Report declared topics whose names differ only in ``.`` and ``_``. Kafka creates only one of them."""
    first_declared: dict[str, DesiredResource] = {}
    for item in desired:
        if not is_topic(item.id):
            continue
        other = first_declared.setdefault(_to_metric_name(item.id.name), item)
        if other is not item:
            yield error(
                NAME_COLLISION,
                "Topic names collide",
                f"The names '{item.id.name}' and '{other.id.name}' ({other.source}) collide: Kafka treats "
                "'.' and '_' as the same character in metric names.",
                hint="Change one of the two names.",
                place=item.source,
                resource=str(item.id),
                subject=str(other.id),
            )


def order_colliding_names(
    operations: tuple[Operation, ...], live: Mapping[str, Topic]
) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """Make the creation of a topic wait until a topic with a colliding name is deleted.

    Kafka refuses 'a.b' while 'a_b' exists, because the metrics of both topics have the same name. Without
    this dependency, Kafka could refuse the new topic although the plan deletes the old topic. If the plan
    does not delete the old topic, deny the new topic.
    """
    creations = {
        op.id: name for op in operations if get_operation_type(op).creates and (name := _find_topic_name(op))
    }
    metric_names = {_to_metric_name(name) for name in creations.values()}
    existing: dict[str, list[str]] = {}
    for name in sorted(live):
        if (metric := _to_metric_name(name)) in metric_names:
            existing.setdefault(metric, []).append(name)
    if not existing:
        return operations, []
    deletions = {
        name: op.id for op in operations if get_operation_type(op).deletes and (name := _find_topic_name(op))
    }
    ordered: list[Operation] = []
    problems: list[Diagnostic] = []
    for op in operations:
        created_topic = creations.get(op.id, "")
        for other in existing.get(_to_metric_name(created_topic), ()):
            if other == created_topic:
                continue
            if other in deletions:
                reason = f"Kafka refuses the name while '{other}' exists"
                op = replace(op, needs={**op.needs, deletions[other]: reason})
                problems.append(_warn_rename(str(op.resource), created_topic, other, deleted=True))
            else:
                problems.append(_report_collision(op, created_topic, other))
        ordered.append(op)
    return tuple(ordered), problems


def _find_topic_name(op: Operation) -> str:
    resource = get_operation_type(op).find_object(op)
    return resource.name if resource is not None and is_topic(resource) else ""


def check_renames(
    compared: Sequence[ResourceComparison], reported: Sequence[Diagnostic]
) -> Iterator[Diagnostic]:
    """Warn about each new topic that has the same declaration as an orphan and a similar name.

    Such a topic is probably the orphan under a new name. Kafka cannot rename topics.

    reported: the earlier diagnostics, so that each rename is reported only once.
    """
    reported_resources = {d.resource for d in reported if d.code in (RENAME, NAME_COLLISION)}
    undeclared = [i for i in compared if i.desired is None and _is_topic(i)]
    if not undeclared:
        return
    undeclared_groups = _group_by_declaration(undeclared, lambda i: i.owned)
    created_groups = _group_by_declaration([i for i in compared if _is_new(i)], lambda i: i.difference.owned)
    for declaration, items in created_groups.items():
        undeclared_items = undeclared_groups.get(declaration, [])
        if len(items) != 1 or len(undeclared_items) != 1 or str(items[0].id) in reported_resources:
            continue
        if SequenceMatcher(None, items[0].id.name, undeclared_items[0].id.name).ratio() >= _MIN_SIMILARITY:
            change = undeclared_items[0].change
            deleted = change is not None and change.action is Action.DELETE and not change.blocked
            place = items[0].desired.source if items[0].desired else None
            yield _warn_rename(
                str(items[0].id), items[0].id.name, undeclared_items[0].id.name, deleted=deleted, place=place
            )


def _is_topic(item: ResourceComparison) -> bool:
    return item.id.kind == "Topic" and item.change is not None and item.change.action is not Action.FORGET


def _is_new(item: ResourceComparison) -> bool:
    change = item.change
    return (
        item.id.kind == "Topic"
        and change is not None
        and change.action is Action.CREATE
        and change.reason is Reason.DECLARED
    )


def _group_by_declaration(
    items: Sequence[ResourceComparison], record: Callable[[ResourceComparison], OwnedRecord | None]
) -> dict[str, list[ResourceComparison]]:
    """Group topics that have the same declaration, apart from the topic id and ``preventDestroy``."""
    groups: dict[str, list[ResourceComparison]] = {}
    for item in items:
        owned = narrow_topic(record(item))
        declaration = (
            replace(owned, topicId=None, preventDestroy=False).to_json() if owned is not None else {}
        )
        groups.setdefault(dump_canonical_json(declaration), []).append(item)
    return groups


def _to_metric_name(topic: str) -> str:
    """Return a topic name as it appears in Kafka's metrics (`Topic.unifyCollisionChars`)."""
    return topic.replace(".", "_")


def _warn_rename(
    resource: str, name: str, other: str, *, deleted: bool, place: SourcePosition | None = None
) -> Diagnostic:
    fate = f"'{other}' is deleted with all its records" if deleted else f"'{other}' keeps its records"
    return warning(
        RENAME,
        "Kafka cannot rename topics",
        f"'{name}' looks like a new name for '{other}'. The new topic is created empty, and {fate}.",
        hint="Copy the records and move the clients before you delete the old topic.",
        place=place,
        resource=resource,
    )


def _report_collision(op: Operation, name: str, other: str) -> Diagnostic:
    return denied(
        NAME_COLLISION,
        "Topic names collide",
        f"Topic '{name}' cannot be created while '{other}' exists: Kafka treats '.' and '_' as the same "
        "character in metric names.",
        hint=f"Choose another name, or delete topic '{other}' and its records in the same plan.",
        resource=str(op.resource),
    )
