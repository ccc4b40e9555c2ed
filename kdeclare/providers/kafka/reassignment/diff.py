"""Find the partitions of a Reassignment that are not on their target brokers, and report problems. Pure."""

from collections.abc import Mapping, Sequence

from kdeclare.core.diagnostics import Diagnostic, denied, error, warning
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import REPLICAS_FIELD_PREFIX
from kdeclare.providers.kafka.reassignment.placement_request import (
    PlacementError,
    PlacementRequest,
    Placer,
    Replicas,
)
from kdeclare.providers.kafka.reassignment.spec import ReassignmentBody, Target
from kdeclare.providers.kafka.risks import assess_placement_field
from kdeclare.providers.kafka.topic.diff import (
    MOVE_IN_FLIGHT,
    MOVE_IN_FLIGHT_HINT,
    list_target_replicas,
    report_move_under_way,
    report_no_placement,
)

REPLICATION_FACTOR_GUARD = "replication-factor-guard"
EXPECTED_REPLICAS = "expected-replicas"
UNKNOWN_PARTITION = "unknown-partition"

REPLICAS_PREFIX = REPLICAS_FIELD_PREFIX


def diff_reassignment(
    resource: ResourceId, desired: DesiredResource, live: KafkaState, placer: Placer
) -> Difference:
    """See `Kind.diff`."""
    body = desired.get_body(ReassignmentBody)
    problems: list[Diagnostic] = _check_names(resource, desired, live)
    targets = body.targets
    try:
        targets += _compute_targets(body, live, placer)
    except PlacementError as placement_error:
        problems.append(report_no_placement(str(resource), str(placement_error), desired.source))
    fields: list[FieldChange] = []
    for target in targets:
        current = live.replicas(target.partition)
        if current == target.replicas:
            continue
        problem = _check_target(resource, desired, live, target, current)
        if problem is not None:
            problems.append(problem)
        if current is not None:
            path = f"{REPLICAS_PREFIX}{target.partition}"
            field = FieldChange(path, FieldOp.CHANGE, list(current), list(target.replicas))
            fields.append(assess_placement_field(field))
    arriving_partitions = [
        t.partition for t in targets if t.partition in live.moves and _is_target_reached(t, live)
    ]
    if arriving_partitions:
        problems.append(report_move_under_way(str(resource), arriving_partitions, live))
    change = None
    if fields:
        blocked_by = next((p.code for p in problems if p.is_blocking), None)
        change = Change(
            resource,
            Action.UPDATE,
            Reason.CHANGED,
            Risk.DISRUPTIVE,
            tuple(fields),
            desired.source,
            blocked_by,
        )
    return Difference(change, None, (), tuple(problems))


def _is_target_reached(target: Target, live: KafkaState) -> bool:
    return live.replicas(target.partition) == target.replicas


def _compute_targets(body: ReassignmentBody, live: KafkaState, placer: Placer) -> tuple[Target, ...]:
    current = {
        name: list_target_replicas(live, live.topics[name]) for name in body.filter_topics(live.topics)
    }
    if not current:
        return ()
    broker_ids = {broker.id for broker in live.cluster.brokers}
    excluded_brokers = body.drain or (
        broker_ids - body.target_brokers if body.target_brokers else frozenset()
    )
    if body.target_brokers:
        excluded_brokers |= {
            r for lists in current.values() for replicas in lists for r in replicas
        } - body.target_brokers
    request = PlacementRequest(
        strategy=body.strategy,
        racks=body.racks,
        excluded_brokers=frozenset(excluded_brokers),
        rebalance=body.rebalance,
        fixed=_find_fixed_partitions(current, live, frozenset(excluded_brokers)),
    )
    replicas_by_topic = placer(live.cluster.brokers, current, request)
    return tuple(
        Target(TopicPartition(name, n), replicas, None)
        for name, lists in sorted(replicas_by_topic.items())
        for n, replicas in enumerate(lists)
    )


def _find_fixed_partitions(
    current: Mapping[str, list[Replicas]], live: KafkaState, excluded_brokers: frozenset[int]
) -> dict[str, frozenset[int]]:
    """Return, by topic, the moving partitions whose target contains no excluded broker.

    The placement must not change these partitions.
    """
    fixed_partitions: dict[str, set[int]] = {}
    for partition in live.moves:
        if partition.topic in current and excluded_brokers.isdisjoint(
            current[partition.topic][partition.partition]
        ):
            fixed_partitions.setdefault(partition.topic, set()).add(partition.partition)
    return {name: frozenset(numbers) for name, numbers in fixed_partitions.items()}


def _check_names(resource: ResourceId, desired: DesiredResource, live: KafkaState) -> list[Diagnostic]:
    """Report topics that do not exist, patterns without a match, and target brokers that do not exist."""
    body = desired.get_body(ReassignmentBody)
    broker_ids = {broker.id for broker in live.cluster.brokers}
    target_topics = {target.partition.topic for target in body.targets}
    diagnostics = [
        error(
            UNKNOWN_PARTITION,
            "No such topic",
            f"Topic '{name}' does not exist in the cluster.",
            hint="Create the topic, or correct its name. To use a regular expression, enclose it in slashes.",
            place=desired.source,
            resource=str(resource),
            subject=f"Topic/{name}",
        )
        for name in sorted(body.names - target_topics - live.topics.keys())
    ]
    diagnostics += [
        warning(
            "no-such-topics",
            "Pattern matches no topic",
            f"The regular expression {text} does not match the whole name of any topic.",
            hint="Correct the regular expression. If the topics do not exist yet, ignore this warning.",
            place=desired.source,
            resource=str(resource),
        )
        for text in body.find_unmatched_patterns(live.topics)
    ]
    if missing_brokers := sorted(body.target_brokers - broker_ids):
        detail = f"The target brokers {missing_brokers} are not registered in the cluster."
        diagnostics.append(_report_unknown_brokers(resource, desired, detail, broker_ids))
    if unregistered_brokers := sorted(body.drain - broker_ids):
        diagnostics.append(_warn_unregistered_drain(resource, desired, unregistered_brokers, broker_ids))
    return diagnostics


def _warn_unregistered_drain(
    resource: ResourceId, desired: DesiredResource, unregistered: Sequence[int], broker_ids: set[int]
) -> Diagnostic:
    return warning(
        "unknown-broker",
        "Drained broker is not registered",
        f"'drain' names the brokers {unregistered}, which are not registered in the cluster.",
        hint=f"Check the ids: brokers {sorted(broker_ids)} are registered. If you have already removed the "
        "brokers, ignore this warning.",
        place=desired.source,
        resource=str(resource),
    )


def _report_unknown_brokers(
    resource: ResourceId, desired: DesiredResource, detail: str, broker_ids: set[int]
) -> Diagnostic:
    return error(
        "unknown-broker",
        "No such broker",
        detail,
        hint=f"Use the ids of registered brokers: {sorted(broker_ids)}.",
        place=desired.source,
        resource=str(resource),
    )


def _check_target(
    resource: ResourceId, desired: DesiredResource, live: KafkaState, target: Target, current: Replicas | None
) -> Diagnostic | None:
    body = desired.get_body(ReassignmentBody)
    partition = target.partition
    broker_ids = {broker.id for broker in live.cluster.brokers}
    if current is None:
        return error(
            UNKNOWN_PARTITION,
            "No such partition",
            f"Partition {partition} does not exist in the cluster.",
            hint="Correct the topic name or the partition number, or create the partition.",
            place=desired.source,
            resource=str(resource),
            subject=f"Topic/{partition.topic}",
        )
    if missing_brokers := sorted(set(target.replicas) - broker_ids):
        detail = f"The target brokers {missing_brokers} of {partition} are not registered in the cluster."
        return _report_unknown_brokers(resource, desired, detail, broker_ids)
    code, summary, detail, hint = "", "", "", ""
    if target.expected is not None and target.expected != current:
        code, summary = EXPECTED_REPLICAS, "Unexpected current replicas"
        detail = (
            f"The replicas of {partition} are on brokers {list(current)}, but 'expectedReplicas' in the "
            f"manifest is {list(target.expected)}. Another client may have moved the replicas."
        )
        hint = "Check the current replicas, then update 'expectedReplicas'."
    elif partition in live.moves:
        code, summary = MOVE_IN_FLIGHT, "Reassignment in progress"
        detail = f"{partition} is already being moved to brokers {list(current)}."
        hint = MOVE_IN_FLIGHT_HINT
    elif len(target.replicas) != len(current) and not body.allow_replication_factor_change:
        code, summary = REPLICATION_FACTOR_GUARD, "Replication factor would change"
        detail = (
            f"The replication factor of {partition} would change from {len(current)} "
            f"to {len(target.replicas)}, but the replication factor guard (KIP-860) is on."
        )
        hint = "Keep the number of replicas, or set allowReplicationFactorChange: true."
    if not code:
        return None
    return denied(code, summary, detail, hint=hint, place=desired.source, resource=str(resource))
