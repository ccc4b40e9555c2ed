"""The three-way diff of one topic, for plans and fleet audits. The diff makes no requests."""

from collections.abc import Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, denied, error, info, warning
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.adoption import report_adoption
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
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.owned_record import is_protected
from kdeclare.core.resources.plan_capabilities import (
    PREVENT_DESTROY,
)
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_diff import ConfigDiff, LiveConfigs, diff_configs
from kdeclare.providers.kafka.config.config_record import Applied, AppliedListPatch, get_applied
from kdeclare.providers.kafka.config.ignored_configs import find_ignored_keys
from kdeclare.providers.kafka.config.omitted_configs import warn_omitted_keys
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Topic
from kdeclare.providers.kafka.reassignment.placement_request import (
    PlacementError,
    PlacementRequest,
    Placer,
    Replicas,
)
from kdeclare.providers.kafka.risks import assess_topic_field
from kdeclare.providers.kafka.topic.ignored_fields import (
    hide_ignored_shape,
    ignore_topic_fields,
    restore_ignored_shape,
)
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.providers.kafka.topic.spec import TopicBody

RECREATED = "recreated"
TOPIC_ID = "topicId"
"""The field of an ownership record that contains the id of the applied topic, if the id is known."""
INVALID_PARTITIONS = "invalid-partitions"
MOVE_IN_FLIGHT = "move-in-flight"
MIN_ISR_KEY = "min.insync.replicas"
MOVE_IN_FLIGHT_HINT = (
    "Plan again after the reassignment has finished (see kdeclare status), pass --await-reassignments to "
    "wait for the reassignment, or pass --override-reassignments to change its target."
)
"""The hint for changes that are denied because of an in-flight reassignment."""


def diff_topic(
    resource: ResourceId,
    desired: DesiredResource | None,
    live: KafkaState,
    owned: TopicRecord | None,
    placer: Placer,
) -> Difference:
    """See `Kind.diff`."""
    topic = live.topics.get(resource.name)
    recreated = is_recreated(owned, topic)
    if desired is None:
        return _release_recreated(resource) if recreated else _diff_undeclared(resource, topic, owned)
    if recreated:
        owned = None  # kdeclare never applied anything to the new topic
    body = ignore_fields(desired, live)
    if body.ignored:
        desired = replace(desired, body=body)
    entries = live.configs.get(ConfigResource(ConfigScope.TOPIC, resource.name), {}) if topic else {}
    omitted = live.omitted.get(resource.name, frozenset())
    live_configs = LiveConfigs(
        str(resource), entries, ConfigSource.TOPIC, load_catalog(ConfigScope.TOPIC), omitted=omitted
    )
    applied = get_applied(owned) if topic else {}
    configs = diff_configs(
        live_configs,
        body.configs,
        applied,
        reset_unmanaged=body.remove_unmanaged,
        ignored=find_ignored_keys(body.ignored),
    )
    placement, placement_problems = _place_replicas(resource, desired, live, topic, placer)
    if topic is None:
        return _diff_creation(resource, desired, live, configs, owned, placement, placement_problems)
    return _diff_update(
        resource, desired, live, topic, configs, owned, placement, placement_problems, recreated=recreated
    )


def ignore_fields(desired: DesiredResource, live: KafkaState) -> TopicBody:
    """See `IgnoresChanges`."""
    body = desired.get_body(TopicBody)
    if not body.ignored:
        return body
    topic = live.topics.get(desired.id.name)
    return ignore_topic_fields(body, None if topic is None else list_target_replicas(live, topic))


def is_recreated(owned: TopicRecord | None, topic: Topic | None) -> bool:
    """Return whether the applied topic was deleted and a different topic now has its name.

    Return False if the state or the cluster has no topic id, because only ids can prove that the topics
    differ.
    """
    applied_id = owned.topicId if owned is not None else None
    return bool(applied_id and topic is not None and topic.topic_id and topic.topic_id != applied_id)


def _place_replicas(
    resource: ResourceId, desired: DesiredResource, live: KafkaState, topic: Topic | None, placer: Placer
) -> tuple[tuple[Replicas, ...], list[Diagnostic]]:
    """Return the replicas that the declared placement strategy chooses, and the problems.

    Without a declared strategy, there are neither replicas nor problems.
    """
    body = desired.get_body(TopicBody)
    if body.strategy is None:
        return (), []
    current = list_target_replicas(live, topic) if topic else []
    count = max(body.partitions or 0, len(current))
    request = PlacementRequest(count, body.replication_factor, body.strategy, body.racks)
    try:
        return placer(live.cluster.brokers, {resource.name: current}, request)[resource.name], []
    except PlacementError as reason:
        return (), [report_no_placement(str(resource), str(reason), desired.source)]


def _build_record(desired: DesiredResource, configs: ConfigDiff, topic: Topic | None) -> TopicRecord:
    """Return the ownership record of the topic after the change.

    If the topic is created, its id is added to the record later.
    """
    body = desired.get_body(TopicBody)
    assignments = body.assignments
    return TopicRecord(
        configs.owned,
        body.prevent_destroy,
        (topic.topic_id or None) if topic is not None else None,
        dict(desired.labels),
        None if assignments is None else {str(n): tuple(replicas) for n, replicas in assignments.items()},
        body.partitions,
        body.replication_factor,
    )


def _diff_creation(
    resource: ResourceId,
    desired: DesiredResource,
    live: KafkaState,
    configs: ConfigDiff,
    owned: TopicRecord | None,
    placement: tuple[Replicas, ...],
    placement_problems: list[Diagnostic],
) -> Difference:
    body = desired.get_body(TopicBody)
    fields: list[FieldChange] = []
    if body.assignments is not None:
        fields += [_build_change(f"assignments.{n}", None, list(r)) for n, r in body.assignments.items()]
    else:
        fields.append(_build_change("partitions", None, body.partitions))
        fields.append(_build_change("replicationFactor", None, body.replication_factor))
    fields += [
        _build_change(f"assignments.{n}", None, list(replicas)) for n, replicas in enumerate(placement)
    ]
    fields = [f for f in fields if f.after is not None] + list(configs.fields)
    reason = Reason.DECLARED if owned is None else Reason.MISSING
    blocking_problems = placement_problems + _check_brokers(resource, desired, live)
    blocked_by = blocking_problems[0].code if blocking_problems else None
    change = Change(resource, Action.CREATE, reason, Risk.SAFE, tuple(fields), desired.source, blocked_by)
    problems = (*blocking_problems, *check_min_isr(desired))
    return Difference(change, _build_record(desired, configs, None), (), problems)


def _diff_update(
    resource: ResourceId,
    desired: DesiredResource,
    live: KafkaState,
    topic: Topic,
    configs: ConfigDiff,
    owned: TopicRecord | None,
    placement: tuple[Replicas, ...],
    placement_problems: list[Diagnostic],
    *,
    recreated: bool,
) -> Difference:
    current = list_target_replicas(live, topic)
    fields, problems = _diff_shape(resource, desired, live, current, placement)
    problems += placement_problems
    moving_partitions = _find_moving_partitions(live, topic)
    if moving_partitions and (fields or _raises_min_isr(configs)):
        problems.append(_report_move_in_flight(resource, desired, live, topic, moving_partitions))
    elif moving_partitions:
        problems.append(
            report_move_under_way(
                str(resource), [TopicPartition(topic.name, n) for n in moving_partitions], live
            )
        )
    enforced = hide_ignored_shape(owned, desired.get_body(TopicBody))
    drifted = (*_find_shape_drift(current, enforced), *(f"configs.{key}" for key in configs.drifted))
    fields += configs.fields
    problems += check_min_isr(desired, min(map(len, current)))
    problems += _check_omitted_keys(desired, live, configs)
    if owned is None and fields:
        problems.append(report_adoption(desired, fields, recreated=recreated))
    elif recreated:
        problems.append(_warn_recreated(desired))
    change = None
    blocked_by = next((p.code for p in problems if p.is_blocking), None)
    if fields or blocked_by:
        reason = Reason.DRIFTED if drifted else Reason.CHANGED
        if owned is None:
            reason = Reason.RECREATED if recreated else Reason.ADOPT
        entries = live.configs.get(ConfigResource(ConfigScope.TOPIC, topic.name), {})
        assessed_fields = tuple(assess_topic_field(Action.UPDATE, field, entries) for field in fields)
        risk = find_highest_risk(assessed_fields)
        change = Change(resource, Action.UPDATE, reason, risk, assessed_fields, desired.source, blocked_by)
    record = _build_record(desired, configs, topic)
    record = restore_ignored_shape(record, owned, desired.get_body(TopicBody))
    return Difference(change, record, configs.unmanaged, tuple(problems), drifted=drifted)


def _raises_min_isr(configs: ConfigDiff) -> bool:
    return any(f.path == f"configs.{MIN_ISR_KEY}" and is_min_isr_increase(f) for f in configs.fields)


def _check_omitted_keys(desired: DesiredResource, live: KafkaState, configs: ConfigDiff) -> list[Diagnostic]:
    omitted = live.omitted.get(desired.id.name)
    if not omitted:
        return []
    keys = omitted & desired.get_body(TopicBody).configs.keys()
    changed = [field.path.partition(".")[2] for field in configs.fields]
    set_keys = sorted(keys.intersection(changed))
    return [warn_omitted_keys(desired, set_keys, sorted(keys.difference(changed)))] if keys else []


def _find_moving_partitions(live: KafkaState, topic: Topic) -> list[int]:
    if not live.moves:
        return []
    return [n for n in range(len(topic.partitions)) if TopicPartition(topic.name, n) in live.moves]


def _diff_shape(
    resource: ResourceId,
    desired: DesiredResource,
    live: KafkaState,
    current: Sequence[Replicas],
    placement: tuple[Replicas, ...],
) -> tuple[list[FieldChange], list[Diagnostic]]:
    """Compare partitions, replication factor and assignments. Return the field changes and the problems."""
    body = desired.get_body(TopicBody)
    count = len(current)
    fields: list[FieldChange] = []
    problems: list[Diagnostic] = []
    if body.partitions is not None and body.partitions < count:
        problems.append(_report_fewer_partitions(resource, desired, count))
    elif body.partitions is not None and body.partitions > count:
        fields.append(_build_change("partitions", count, body.partitions))
    if body.assignments is None and body.replication_factor is not None:
        sizes = sorted({*map(len, current)})
        if sizes != [body.replication_factor]:
            before_size = sizes[0] if len(sizes) == 1 else sizes
            fields.append(_build_change("replicationFactor", before_size, body.replication_factor))
    for n, replicas in (body.assignments or dict(enumerate(placement))).items():
        before = current[n] if n < count else None
        if before != replicas:
            fields.append(_build_change(f"assignments.{n}", _to_list(before), list(replicas)))
    return fields, problems + _check_brokers(resource, desired, live)


def list_target_replicas(live: KafkaState, topic: Topic) -> list[tuple[int, ...]]:
    """Return the replicas of each partition.

    If a partition is moving, return its target replicas (KIP-860).
    """
    if not live.moves:
        return [partition.replicas for partition in topic.partitions]
    return [live.replicas(TopicPartition(topic.name, n)) or () for n in range(len(topic.partitions))]


def _find_shape_drift(current: Sequence[Replicas], owned: TopicRecord | None) -> list[str]:
    """Return the paths of fields, except configs, whose live value differs from the last applied value."""
    if owned is None:
        return []
    paths: list[str] = []
    partitions, factor = owned.partitions, owned.replicationFactor
    if partitions is not None and partitions != len(current):
        paths.append("partitions")
    if factor is not None and {*map(len, current)} - {factor}:
        paths.append("replicationFactor")
    for n, replicas in (owned.assignments or {}).items():
        if int(n) < len(current) and tuple(current[int(n)]) != replicas:
            paths.append(f"assignments.{n}")
    return paths


def _warn_recreated(desired: DesiredResource) -> Diagnostic:
    return warning(
        RECREATED,
        "Topic re-created",
        f"Topic '{desired.id.name}' was deleted and re-created outside kdeclare since it was last applied. "
        "The new topic matches the manifest, so apply takes ownership of the new topic. The records of the "
        "deleted topic are gone.",
        hint="Before you apply, check who re-created the topic.",
        place=desired.source,
        resource=str(desired.id),
    )


def _release_recreated(resource: ResourceId) -> Difference:
    """End the ownership of a topic that was deleted, and whose name now belongs to a different topic."""
    diagnostic = warning(
        RECREATED,
        "Topic re-created",
        f"Topic '{resource.name}', which kdeclare owned, was deleted and re-created outside kdeclare, and no "
        "manifest declares the topic anymore. Apply leaves the new topic unchanged, and kdeclare gives up "
        "ownership of the deleted topic.",
        hint=f"If the new topic is not needed, run 'kdeclare topic delete {resource.name}'.",
        resource=str(resource),
    )
    return Difference(None, None, (), (diagnostic,))


def _diff_undeclared(resource: ResourceId, topic: Topic | None, owned: TopicRecord | None) -> Difference:
    if topic is None:
        return Difference(None)
    fields = (
        _build_change("partitions", len(topic.partitions), None),
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
        problems = (_report_deletion_prevented(resource, "it is an internal topic of Kafka."),)
    elif is_protected(owned):
        reason = "lifecycle.preventDestroy was true when the topic was last applied."
        problems = (_report_deletion_prevented(resource, reason),)
    return Difference(change, None, (), problems)


def _show_applied(applied: Applied) -> JsonValue:
    """Return the config value that a plan shows for a deleted topic; None for a secret."""
    if isinstance(applied, SecretRef):
        return None
    value = applied.append if isinstance(applied, AppliedListPatch) else applied.value
    return list(value) if isinstance(value, tuple) else value


def _report_deletion_prevented(resource: ResourceId, reason: str) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"Topic '{resource.name}' cannot be deleted: {reason}",
        hint=f"Declare the topic again, or give up its ownership with 'kdeclare apply --forget {resource}'.",
        resource=str(resource),
    )


def _report_fewer_partitions(resource: ResourceId, desired: DesiredResource, count: int) -> Diagnostic:
    return denied(
        INVALID_PARTITIONS,
        "Fewer partitions than the topic has",
        f"Topic '{resource.name}' has {count} partitions, but the manifest declares "
        f"{desired.get_body(TopicBody).partitions}. Kafka cannot remove partitions.",
        hint=f"Declare at least {count} partitions, or create another topic and copy the records to that "
        "topic.",
        place=desired.source,
        resource=str(resource),
    )


def report_no_placement(resource: str, reason: str, place: SourcePosition | None) -> Diagnostic:
    """Return the error for an impossible placement."""
    return error(
        "no-placement",
        "Replicas cannot be placed",
        f"{reason}.",
        hint="Correct the placement rule or the replication factor, or add suitable brokers.",
        place=place,
        resource=resource,
    )


def _report_move_in_flight(
    resource: ResourceId,
    desired: DesiredResource,
    live: KafkaState,
    topic: Topic,
    moving_partitions: list[int],
) -> Diagnostic:
    first = live.moves[TopicPartition(topic.name, moving_partitions[0])]
    count = len(moving_partitions)
    subject = "1 partition" if count == 1 else f"{count} partitions"
    return denied(
        MOVE_IN_FLIGHT,
        "Reassignment in progress",
        f"{subject} of topic '{topic.name}' {'is' if count == 1 else 'are'} being reassigned "
        f"(partition {moving_partitions[0]} to brokers {list(first.target)}). kdeclare does not apply the "
        "change during the reassignment.",
        hint=MOVE_IN_FLIGHT_HINT,
        place=desired.source,
        resource=str(resource),
    )


def report_move_under_way(
    resource: str, moving_partitions: Sequence[TopicPartition], live: KafkaState
) -> Diagnostic:
    """Return a note about an in-flight reassignment that blocks no change and is not drift."""
    first = moving_partitions[0]
    other_count = len(moving_partitions) - 1
    others = "" if not other_count else f" and {other_count} more partition{'s' if other_count > 1 else ''}"
    return info(
        "move-under-way",
        "Reassignment in progress",
        f"{first}{others} {'are' if other_count else 'is'} being reassigned ({first} to brokers "
        f"{list(live.moves[first].target)}). This is not drift; no action is needed.",
        hint="To follow the reassignment, run kdeclare status --watch.",
        resource=resource,
    )


def is_min_isr_increase(field: FieldChange) -> bool:
    """Return whether a change raises min.insync.replicas. An unset value counts as 1."""
    before, after = (parse_whole_number(str(value or 1)) for value in (field.before, field.after))
    return before is not None and after is not None and after > before


def _check_brokers(resource: ResourceId, desired: DesiredResource, live: KafkaState) -> list[Diagnostic]:
    assignments = desired.get_body(TopicBody).assignments
    if not assignments:
        return []
    broker_ids = {broker.id for broker in live.cluster.brokers}
    assigned_ids = {broker for replicas in assignments.values() for broker in replicas}
    if assigned_ids <= broker_ids:
        return []
    return [
        error(
            "unknown-broker",
            "Unknown broker",
            f"The assignments of topic '{resource.name}' contain broker ids that are not registered in the "
            f"cluster: {sorted(assigned_ids - broker_ids)}.",
            hint=f"Use the ids of registered brokers: {sorted(broker_ids)}.",
            place=desired.source,
            resource=str(resource),
        )
    ]


def check_min_isr(desired: DesiredResource, live_factor: int | None = None) -> tuple[Diagnostic, ...]:
    """Warn if min.insync.replicas exceeds the replication factor. Kafka accepts this combination.

    See docs/kafka-observed.md for the consequences.
    """
    body = desired.get_body(TopicBody)
    config_value = body.configs.get("min.insync.replicas")
    sizes = [len(r) for r in (body.assignments or {}).values()]
    factor = min(sizes) if sizes else body.replication_factor or live_factor
    value = getattr(config_value, "value", None)
    required = parse_whole_number(value) if isinstance(value, str) else None
    if factor is None or required is None or required <= factor:
        return ()
    return (
        warning(
            "min-isr-above-factor",
            "min.insync.replicas above the replication factor",
            f"Topic '{desired.id.name}' requires {value} in-sync replicas, but its replication factor is "
            f"{factor}. With Kafka 4.3, producers with acks=all cannot write to the topic while any replica "
            "is out of sync. With older brokers, such producers may never be able to write.",
            hint="Lower min.insync.replicas, or raise the replication factor.",
            place=desired.source,
            resource=str(desired.id),
        ),
    )


def _build_change(path: str, before: JsonValue, after: JsonValue) -> FieldChange:
    return FieldChange(path, FieldOp.CHANGE, before, after)


def _to_list(replicas: tuple[int, ...] | None) -> JsonValue:
    return None if replicas is None else list(replicas)
