"""The diff of a Reassignment: which partitions are not where they are to be, and what is in the way. Pure."""

from collections.abc import Mapping

from kdeclare.core.diagnostics import Diagnostic, denied, error, warning
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired, Difference
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import REPLICAS_FIELD
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, Placer, Replicas, Wish
from kdeclare.providers.kafka.reassignment.spec import ReassignmentBody, Target
from kdeclare.providers.kafka.risks import assess_placement_field
from kdeclare.providers.kafka.topic.diff import (
    IN_THE_WAY,
    MOVE_IN_FLIGHT,
    not_placed,
    true_replicas,
    under_way,
)

GUARD = "replication-factor-guard"
EXPECTED_REPLICAS = "expected-replicas"
UNKNOWN_PARTITION = "unknown-partition"

PREFIX = REPLICAS_FIELD


def diff_reassignment(resource: ResourceId, desired: Desired, live: KafkaState, place: Placer) -> Difference:
    """See `Kind.diff`."""
    body = desired.get_body(ReassignmentBody)
    problems: list[Diagnostic] = _unknown(resource, desired, live)
    targets = body.targets
    try:
        targets += _placed(body, live, place)
    except PlacementError as reason:
        problems.append(not_placed(str(resource), str(reason), desired.source))
    fields: list[FieldChange] = []
    for target in targets:
        current = live.replicas(target.partition)
        if current == target.replicas:
            continue
        wrong = _problem(resource, desired, live, target, current)
        if wrong is not None:
            problems.append(wrong)
        if current is not None:
            path = f"{PREFIX}{target.partition}"
            field = FieldChange(path, FieldOp.CHANGE, list(current), list(target.replicas))
            fields.append(assess_placement_field(field))
    arriving = [t.partition for t in targets if t.partition in live.moves and _is_there(t, live)]
    if arriving:
        problems.append(under_way(str(resource), arriving, live))
    change = None
    if fields:
        blocked = next((p.code for p in problems if p.blocks), None)
        change = Change(
            resource, Action.UPDATE, Reason.CHANGED, Risk.DISRUPTIVE, tuple(fields), desired.source, blocked
        )
    return Difference(change, None, (), tuple(problems))


def _is_there(target: Target, live: KafkaState) -> bool:
    return live.replicas(target.partition) == target.replicas


def _placed(body: ReassignmentBody, live: KafkaState, place: Placer) -> tuple[Target, ...]:
    """Where the partitions of its topics are to be."""
    current = {name: true_replicas(live, live.topics[name]) for name in body.matching(live.topics)}
    if not current:
        return ()
    known = {broker.id for broker in live.cluster.brokers}
    off = body.drain or (known - body.target_brokers if body.target_brokers else frozenset())
    if body.target_brokers:
        off |= {r for lists in current.values() for replicas in lists for r in replicas} - body.target_brokers
    wish = Wish(
        strategy=body.strategy,
        racks=body.racks,
        without=frozenset(off),
        even=body.rebalance,
        fixed=_under_way(current, live, frozenset(off)),
    )
    placed = place(live.cluster.brokers, current, wish)
    return tuple(
        Target(TopicPartition(name, n), replicas, None)
        for name, lists in sorted(placed.items())
        for n, replicas in enumerate(lists)
    )


def _under_way(
    current: Mapping[str, list[Replicas]], live: KafkaState, off: frozenset[int]
) -> dict[str, frozenset[int]]:
    """Partitions that are being moved, and to where they may be: they are left to it."""
    fixed: dict[str, set[int]] = {}
    for partition in live.moves:
        if partition.topic in current and off.isdisjoint(current[partition.topic][partition.partition]):
            fixed.setdefault(partition.topic, set()).add(partition.partition)
    return {name: frozenset(numbers) for name, numbers in fixed.items()}


def _unknown(resource: ResourceId, desired: Desired, live: KafkaState) -> list[Diagnostic]:
    """Topics and target brokers that are not there; of partitions, see `_problem`."""
    body = desired.get_body(ReassignmentBody)
    known = {broker.id for broker in live.cluster.brokers}
    partitioned = {target.partition.topic for target in body.targets}
    found = [
        error(
            UNKNOWN_PARTITION,
            "No such topic",
            f"'{name}' is not in the cluster.",
            hint="Create the topic, or correct its name; a regular expression stands between slashes.",
            place=desired.source,
            resource=str(resource),
            subject=f"Topic/{name}",
        )
        for name in sorted(body.names - partitioned - live.topics.keys())
    ]
    found += [
        warning(
            "no-such-topics",
            "A pattern matches no topic",
            f"There is no topic whose whole name matches {text}.",
            hint="Correct the regular expression; where the topics are yet to come, nothing is wrong.",
            place=desired.source,
            resource=str(resource),
        )
        for text in body.idle_patterns(live.topics)
    ]
    if missing := sorted(body.target_brokers - known):
        detail = f"The replicas are to be on {missing}, which the cluster does not have."
        found.append(_no_broker(resource, desired, detail, known))
    return found


def _no_broker(resource: ResourceId, desired: Desired, detail: str, known: set[int]) -> Diagnostic:
    return error(
        "unknown-broker",
        "No such broker",
        detail,
        hint=f"It has {sorted(known)}.",
        place=desired.source,
        resource=str(resource),
    )


def _problem(
    resource: ResourceId, desired: Desired, live: KafkaState, target: Target, current: Replicas | None
) -> Diagnostic | None:
    """What keeps one partition from being moved, if something does."""
    body = desired.get_body(ReassignmentBody)
    partition = target.partition
    known = {broker.id for broker in live.cluster.brokers}
    if current is None:
        return error(
            UNKNOWN_PARTITION,
            "No such partition",
            f"{partition} is not in the cluster.",
            hint="Create the topic, or correct its name and the partition's number.",
            place=desired.source,
            resource=str(resource),
            subject=f"Topic/{partition.topic}",
        )
    if missing := sorted(set(target.replicas) - known):
        detail = f"{partition} is to be on {missing}, which the cluster does not have."
        return _no_broker(resource, desired, detail, known)
    code, summary, detail, hint = "", "", "", ""
    if target.expected is not None and target.expected != current:
        code, summary = EXPECTED_REPLICAS, "Replicas are not as expected"
        detail = f"{partition} is on {list(current)}, and the manifest expects {list(target.expected)}."
        hint = "Somebody has moved it since: look at it again and correct expectedReplicas."
    elif partition in live.moves:
        code, summary = MOVE_IN_FLIGHT, "A move is in flight"
        detail = f"{partition} is being moved to {list(current)} right now."
        hint = IN_THE_WAY
    elif len(target.replicas) != len(current) and not body.allow_replication_factor_change:
        code, summary = GUARD, "The replication factor would change"
        detail = (
            f"The replication factor of {partition} would change from {len(current)} "
            f"to {len(target.replicas)}, and the guard of KIP-860 is on."
        )
        hint = "Name as many replicas as it has, or set allowReplicationFactorChange: true."
    if not code:
        return None
    return denied(code, summary, detail, hint=hint, place=desired.source, resource=str(resource))
