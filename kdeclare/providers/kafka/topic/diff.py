"""The three-way diff of one topic. Pure: serves one topic in-process and a fleet alike."""

from collections.abc import Sequence

from kdeclare.core.diagnostics import Diagnostic, Place, denied, error, info, warning
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.adoption import adoption_of
from kdeclare.core.resources.capabilities import PREVENT_DESTROY
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk, highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired, Difference
from kdeclare.core.resources.owned_record import is_protected
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import ConfigDiff, ConfigSide, diff_configs
from kdeclare.providers.kafka.config.config_record import Applied, AppliedParts, get_applied
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Topic
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, Placer, Replicas, Wish
from kdeclare.providers.kafka.risks import assess_topic_field
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.providers.kafka.topic.spec import TopicBody

RECREATED = "recreated"
TOPIC_ID = "topicId"
"""Of an owned record: the id of the topic that was applied; missing where it is not known yet."""
INVALID_PARTITIONS = "invalid-partitions"
MOVE_IN_FLIGHT = "move-in-flight"
MIN_ISR = "min.insync.replicas"
IN_THE_WAY = (
    "It is left alone. Plan again once it is over (kdeclare status), or with --await-reassignments to wait "
    "for it, or with --override-reassignments to send it elsewhere."
)
"""What to do about a move that is in the way."""


def diff_topic(
    resource: ResourceId, desired: Desired | None, live: KafkaState, owned: TopicRecord | None, place: Placer
) -> Difference:
    """See `Kind.diff`."""
    topic = live.topics.get(resource.name)
    recreated = is_recreated(owned, topic)
    if desired is None:
        return _released(resource) if recreated else _undeclared(resource, topic, owned)
    if recreated:
        owned = None  # it is another topic, to which nothing was ever applied
    body = desired.get_body(TopicBody)
    entries = live.configs.get(ConfigResource(ConfigScope.TOPIC, resource.name), {}) if topic else {}
    side = ConfigSide(str(resource), entries, ConfigSource.TOPIC, catalog(ConfigScope.TOPIC))
    was = get_applied(owned) if topic else {}
    configs = diff_configs(side, body.configs, was, reset_unmanaged=body.remove_unmanaged)
    placed, misplaced = _placed(resource, desired, live, topic, place)
    if topic is None:
        return _creation(resource, desired, live, configs, owned, placed, misplaced)
    return _update(resource, desired, live, topic, configs, owned, placed, misplaced, recreated=recreated)


def is_recreated(owned: TopicRecord | None, topic: Topic | None) -> bool:
    """Whether the topic that was applied is gone, and another one has its name.

    Nothing proves it where the state or the cluster has no id.
    """
    applied = owned.topicId if owned is not None else None
    return bool(applied and topic is not None and topic.topic_id and topic.topic_id != applied)


def _placed(
    resource: ResourceId, desired: Desired, live: KafkaState, topic: Topic | None, place: Placer
) -> tuple[tuple[Replicas, ...], list[Diagnostic]]:
    """Where a declared strategy puts the partitions; empty where none is declared."""
    body = desired.get_body(TopicBody)
    if body.strategy is None:
        return (), []
    current = true_replicas(live, topic) if topic else []
    count = max(body.partitions or 0, len(current))
    wish = Wish(count, body.replication_factor, body.strategy, body.racks)
    try:
        return place(live.cluster.brokers, {resource.name: current}, wish)[resource.name], []
    except PlacementError as reason:
        return (), [not_placed(str(resource), str(reason), desired.source)]


def _owned_record(desired: Desired, configs: ConfigDiff, topic: Topic | None) -> TopicRecord:
    """What is owned then; the id of a topic that is yet to be created, its run adds."""
    body = desired.get_body(TopicBody)
    assigned = body.assignments
    return TopicRecord(
        configs.owned,
        body.prevent_destroy,
        (topic.topic_id or None) if topic is not None else None,
        dict(desired.labels),
        None if assigned is None else {str(n): tuple(replicas) for n, replicas in assigned.items()},
        body.partitions,
        body.replication_factor,
    )


def _creation(
    resource: ResourceId,
    desired: Desired,
    live: KafkaState,
    configs: ConfigDiff,
    owned: TopicRecord | None,
    placed: tuple[Replicas, ...],
    misplaced: list[Diagnostic],
) -> Difference:
    body = desired.get_body(TopicBody)
    fields: list[FieldChange] = []
    if body.assignments is not None:
        fields += [_change(f"assignments.{n}", None, list(r)) for n, r in body.assignments.items()]
    else:
        fields.append(_change("partitions", None, body.partitions))
        fields.append(_change("replicationFactor", None, body.replication_factor))
    fields += [_change(f"assignments.{n}", None, list(replicas)) for n, replicas in enumerate(placed)]
    fields = [f for f in fields if f.after is not None] + list(configs.fields)
    reason = Reason.DECLARED if owned is None else Reason.MISSING
    wrong = misplaced + _unknown_brokers(resource, desired, live)
    blocked = wrong[0].code if wrong else None
    change = Change(resource, Action.CREATE, reason, Risk.SAFE, tuple(fields), desired.source, blocked)
    problems = (*wrong, *min_isr_problems(desired))
    return Difference(change, _owned_record(desired, configs, None), (), problems)


def _update(
    resource: ResourceId,
    desired: Desired,
    live: KafkaState,
    topic: Topic,
    configs: ConfigDiff,
    owned: TopicRecord | None,
    placed: tuple[Replicas, ...],
    misplaced: list[Diagnostic],
    *,
    recreated: bool,
) -> Difference:
    current = true_replicas(live, topic)
    fields, problems = _shape(resource, desired, live, current, placed)
    problems += misplaced
    moving = _find_moving(live, topic)
    waits = any(f.path == f"configs.{MIN_ISR}" and raises_min_isr(f) for f in configs.fields)
    if moving and (fields or waits):
        problems.append(_moving(resource, desired, live, topic, moving))
    elif moving:
        problems.append(under_way(str(resource), [TopicPartition(topic.name, n) for n in moving], live))
    drifted = (*_shape_drifted(current, owned), *(f"configs.{key}" for key in configs.drifted))
    fields += configs.fields
    problems += min_isr_problems(desired, min(map(len, current)))
    if owned is None and fields:
        problems.append(adoption_of(desired, fields, recreated=recreated))
    elif recreated:
        problems.append(_taken_again(desired))
    change = None
    blocked = next((p.code for p in problems if p.blocks), None)
    if fields or blocked:
        reason = Reason.DRIFTED if drifted else Reason.CHANGED
        if owned is None:
            reason = Reason.RECREATED if recreated else Reason.ADOPT
        entries = live.configs.get(ConfigResource(ConfigScope.TOPIC, topic.name), {})
        rated = tuple(assess_topic_field(Action.UPDATE, field, entries) for field in fields)
        risk = highest_risk(rated)
        change = Change(resource, Action.UPDATE, reason, risk, rated, desired.source, blocked)
    record = _owned_record(desired, configs, topic)
    return Difference(change, record, configs.unmanaged, tuple(problems), drifted=drifted)


def _find_moving(live: KafkaState, topic: Topic) -> list[int]:
    """The partitions of a topic that are being moved."""
    if not live.moves:
        return []
    return [n for n in range(len(topic.partitions)) if TopicPartition(topic.name, n) in live.moves]


def _shape(
    resource: ResourceId,
    desired: Desired,
    live: KafkaState,
    current: Sequence[Replicas],
    placed: tuple[Replicas, ...],
) -> tuple[list[FieldChange], list[Diagnostic]]:
    """Partitions, replication factor and assignments: what differs, and what cannot be had."""
    body = desired.get_body(TopicBody)
    count = len(current)
    fields: list[FieldChange] = []
    problems: list[Diagnostic] = []
    if body.partitions is not None and body.partitions < count:
        problems.append(_fewer_partitions(resource, desired, count))
    elif body.partitions is not None and body.partitions > count:
        fields.append(_change("partitions", count, body.partitions))
    if body.assignments is None and body.replication_factor is not None:
        sizes = sorted({*map(len, current)})
        if sizes != [body.replication_factor]:
            before_size = sizes[0] if len(sizes) == 1 else sizes
            fields.append(_change("replicationFactor", before_size, body.replication_factor))
    for n, replicas in (body.assignments or dict(enumerate(placed))).items():
        before = current[n] if n < count else None
        if before != replicas:
            fields.append(_change(f"assignments.{n}", _list(before), list(replicas)))
    return fields, problems + _unknown_brokers(resource, desired, live)


def true_replicas(live: KafkaState, topic: Topic) -> list[tuple[int, ...]]:
    """The replicas of each partition, where an ongoing move is heading (KIP-860)."""
    if not live.moves:
        return [partition.replicas for partition in topic.partitions]
    return [live.replicas(TopicPartition(topic.name, n)) or () for n in range(len(topic.partitions))]


def _shape_drifted(current: Sequence[Replicas], owned: TopicRecord | None) -> list[str]:
    """Paths beside the configs where live is no longer what was last applied."""
    if owned is None:
        return []
    found: list[str] = []
    partitions, factor = owned.partitions, owned.replicationFactor
    if partitions is not None and partitions != len(current):
        found.append("partitions")
    if factor is not None and {*map(len, current)} - {factor}:
        found.append("replicationFactor")
    for n, replicas in (owned.assignments or {}).items():
        if int(n) < len(current) and tuple(current[int(n)]) != replicas:
            found.append(f"assignments.{n}")
    return found


def _taken_again(desired: Desired) -> Diagnostic:
    return warning(
        RECREATED,
        "Topic was deleted and created again",
        f"Topic '{desired.id.name}' was deleted and created again outside kdeclare since it was last "
        "applied. The new one equals its manifest, so apply takes ownership of it. Earlier records are gone.",
        place=desired.source,
        resource=str(desired.id),
    )


def _released(resource: ResourceId) -> Difference:
    """The topic that is owned is gone: there is nothing to delete, and ownership ends."""
    found = warning(
        RECREATED,
        "Topic was deleted and created again",
        f"Topic '{resource.name}', which kdeclare owned, was deleted outside kdeclare, and no manifest "
        "declares it anymore. Another topic has its name now. It is not deleted; apply ends the ownership.",
        hint=f"To delete the other topic, run 'kdeclare topic delete {resource.name}'.",
        resource=str(resource),
    )
    return Difference(None, None, (), (found,))


def _undeclared(resource: ResourceId, topic: Topic | None, owned: TopicRecord | None) -> Difference:
    if topic is None:
        return Difference(None)
    fields = (
        _change("partitions", len(topic.partitions), None),
        *(
            FieldChange(f"configs.{key}", FieldOp.DELETE, before, None)
            for key, applied in sorted(get_applied(owned).items())
            if (before := _show_applied(applied)) is not None
        ),
    )
    fields = tuple(assess_topic_field(Action.DELETE, field) for field in fields)
    change = Change(resource, Action.DELETE, Reason.ORPHANED, Risk.DESTRUCTIVE, fields)
    problems: tuple[Diagnostic, ...] = ()
    if topic.internal:
        problems = (_never_deleted(resource, "It is one of Kafka's internal topics.", ""),)
    elif is_protected(owned):
        why = "Its lifecycle.preventDestroy was true when last applied."
        hint = f"Declare it (again), or let go of it with 'kdeclare apply --forget {resource}'."
        problems = (_never_deleted(resource, why, hint),)
    return Difference(change, None, (), problems)


def _show_applied(applied: Applied) -> JsonValue:
    """What goes with a key of a deleted topic; None where nothing is to be shown."""
    if isinstance(applied, SecretRef):
        return None
    value = applied.append if isinstance(applied, AppliedParts) else applied.value
    return list(value) if isinstance(value, tuple) else value


def _never_deleted(resource: ResourceId, why: str, hint: str) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"Topic '{resource.name}' must not be deleted: {why}",
        hint=hint,
        resource=str(resource),
    )


def _fewer_partitions(resource: ResourceId, desired: Desired, count: int) -> Diagnostic:
    """Kafka cannot remove partitions (KIP-4: InvalidPartitions). Only this resource is blocked."""
    return denied(
        INVALID_PARTITIONS,
        "Fewer partitions than the topic has",
        f"Topic '{resource.name}' has {count} partitions, but the manifest declares "
        f"{desired.get_body(TopicBody).partitions}. Kafka cannot remove partitions.",
        hint=f"Declare {count} or more, or create another topic and copy the records.",
        place=desired.source,
        resource=str(resource),
    )


def not_placed(resource: str, reason: str, place: Place | None) -> Diagnostic:
    """There is no such placement."""
    return error("no-placement", "Replicas cannot be placed", reason, place=place, resource=resource)


def _moving(
    resource: ResourceId, desired: Desired, live: KafkaState, topic: Topic, moving: list[int]
) -> Diagnostic:
    first = live.moves[TopicPartition(topic.name, moving[0])]
    return denied(
        MOVE_IN_FLIGHT,
        "A move is in flight",
        f"{len(moving)} partitions of '{topic.name}' are being moved right now "
        f"(partition {moving[0]} to {list(first.target)}).",
        hint=IN_THE_WAY,
        place=desired.source,
        resource=str(resource),
    )


def under_way(resource: str, moving: Sequence[TopicPartition], live: KafkaState) -> Diagnostic:
    """A move that is in nobody's way: no drift, and nothing to be done about it."""
    first = moving[0]
    more = f" and {len(moving) - 1} more partitions" if len(moving) > 1 else ""
    return info(
        "move-under-way",
        "A move is under way",
        f"{first} is being moved to {list(live.moves[first].target)}{more}. It is no drift and left alone.",
        hint="kdeclare status --watch follows it.",
        resource=resource,
    )


def raises_min_isr(field: FieldChange) -> bool:
    """Whether more replicas must be in sync than now; what is unset counts as one."""
    before, after = (str(value or 1) for value in (field.before, field.after))
    return before.isdecimal() and after.isdecimal() and int(after) > int(before)


def _unknown_brokers(resource: ResourceId, desired: Desired, live: KafkaState) -> list[Diagnostic]:
    """Brokers of declared assignments that the cluster does not have."""
    assignments = desired.get_body(TopicBody).assignments
    if not assignments:
        return []
    known = {broker.id for broker in live.cluster.brokers}
    named = {broker for replicas in assignments.values() for broker in replicas}
    if named <= known:
        return []
    return [
        error(
            "unknown-broker",
            "No such broker",
            f"The assignments of '{resource.name}' name {sorted(named - known)}, "
            "which the cluster does not have.",
            hint=f"It has {sorted(known)}.",
            place=desired.source,
            resource=str(resource),
        )
    ]


def min_isr_problems(desired: Desired, live_factor: int | None = None) -> tuple[Diagnostic, ...]:
    """Kafka takes min.insync.replicas above the factor; see docs/kafka-observed.md for what comes of it."""
    body = desired.get_body(TopicBody)
    wish = body.configs.get("min.insync.replicas")
    sizes = [len(r) for r in (body.assignments or {}).values()]
    factor = min(sizes) if sizes else body.replication_factor or live_factor
    value = getattr(wish, "value", None)
    if factor is None or not isinstance(value, str) or not value.isdecimal() or int(value) <= factor:
        return ()
    return (
        warning(
            "min-isr-above-factor",
            "min.insync.replicas above the replication factor",
            f"'{desired.id.name}' would want {value} replicas in sync; its replication factor is {factor}.",
            hint="Kafka 4.3 wants all of its replicas in sync then, so that one that is down keeps producers "
            "with acks=all from writing; older brokers may never let them write. Lower it, or raise the "
            "replication factor.",
            place=desired.source,
            resource=str(desired.id),
        ),
    )


def _change(path: str, before: JsonValue, after: JsonValue) -> FieldChange:
    return FieldChange(path, FieldOp.CHANGE, before, after)


def _list(replicas: tuple[int, ...] | None) -> JsonValue:
    return None if replicas is None else list(replicas)
