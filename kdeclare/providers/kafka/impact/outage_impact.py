"""Observe which partitions reject records while a broker or a rack is down, before and after a plan."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.units import format_count, format_names
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.topic_settings import MIN_ISR, TopicSettings, require_known
from kdeclare.providers.kafka.impact.writability import (
    Place,
    ReplicaSet,
    WritabilityChange,
    compare_places,
    find_critical_brokers,
    find_critical_racks,
)
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.reassignment.completion import is_reassignment

_TOPIC = "Topic"
_FACTOR = "replicationFactor"
_MIN_ISR_PATH = f"configs.{MIN_ISR}"
_WRITABLE, _NOT_WRITABLE = "writable", "not-writable"
OUTAGE_CODES = frozenset({_WRITABLE, _NOT_WRITABLE})
"""The codes of the observations about outages."""


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """The replicas of one partition before and after the plan.

    resource: the resource for which the partition is reported; see `review_outages`.
    """

    resource: str
    partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OutageReview:
    """The data that shows whether a plan makes partitions unwritable during outages.

    placements: the partitions to compare. paths: for each resource, the field that its observation is about.
    racks: the rack of each broker that has one.
    """

    placements: Sequence[PlacementChange]
    paths: Mapping[str, str | None]
    racks: Mapping[int, str]

    @property
    def topics(self) -> frozenset[str]:
        """The topics whose ``min.insync.replicas`` must be known."""
        return frozenset(placement.partition.topic for placement in self.placements)


def review_outages(
    live: KafkaState, operations: Sequence[Operation], changes: Sequence[Change]
) -> OutageReview:
    """Return the partitions whose behavior during outages the plan can change.

    A partition is reported for its topic if the plan changes this topic's replicas or
    ``min.insync.replicas``, and otherwise for the resource that moves it. Each partition is included only
    once, with its replicas before and after the whole plan. Resources that cannot change the behavior of a
    partition are left out.
    """
    movers, targets = _list_targets(operations)
    moving_resources = set(movers.values())
    racks = {broker.id: broker.rack for broker in live.cluster.brokers if broker.rack is not None}
    placements: dict[str, list[PlacementChange]] = defaultdict(list)
    paths: dict[str, str | None] = {}
    for change in changes:
        topic = live.topics.get(change.id.name)
        if change.id.kind != _TOPIC or change.action is not Action.UPDATE or topic is None:
            continue
        if not _changes_min_isr(change) and str(change.id) not in moving_resources:
            continue
        paths[str(change.id)] = _find_path(change)
        for number in range(len(topic.partitions)):
            partition = TopicPartition(topic.name, number)
            before = live.replicas(partition) or ()
            after = targets.get(partition, (before, before))[1]
            placements[str(change.id)].append(PlacementChange(str(change.id), partition, before, after))
    by_topic = {placement.partition for each in placements.values() for placement in each}
    for partition, (before, after) in targets.items():
        if partition not in by_topic and before:
            placements[movers[partition]].append(PlacementChange(movers[partition], partition, before, after))
    relevant = {
        resource: each
        for resource, each in placements.items()
        if paths.get(resource) == _MIN_ISR_PATH or any(_differs(placement, racks) for placement in each)
    }
    return OutageReview([placement for each in relevant.values() for placement in each], paths, racks)


def _list_targets(
    operations: Sequence[Operation],
) -> tuple[Mapping[TopicPartition, str], Mapping[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Return the resource that moves each partition, and the replicas of the partition before and after."""
    movers: dict[TopicPartition, str] = {}
    targets: dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for op in operations:
        if is_reassignment(op):
            for name, target in get_targets(op).items():
                partition = TopicPartition.parse(name)
                movers[partition] = str(op.resource)
                targets[partition] = (get_replicas_before(op, name), target)
    return movers, targets


def _find_path(change: Change) -> str | None:
    if _changes_min_isr(change):
        return _MIN_ISR_PATH
    return _FACTOR if any(field.path == _FACTOR for field in change.fields) else None


def _changes_min_isr(change: Change) -> bool:
    return any(field.path == _MIN_ISR_PATH for field in change.fields)


def _differs(placement: PlacementChange, racks: Mapping[int, str]) -> bool:
    """Whether the number of replicas or their distribution over racks changes."""
    return _count_per_rack(placement.before, racks) != _count_per_rack(placement.after, racks)


def _count_per_rack(replicas: Sequence[int], racks: Mapping[int, str]) -> Sequence[int]:
    """Return the sorted numbers of replicas per rack, without the names of the racks.

    Each broker without a rack counts as its own rack.
    """
    places = [racks.get(broker, broker) for broker in replicas]
    return sorted(places.count(place) for place in set(places))


class _Comparison(NamedTuple):
    """One partition before and after the plan."""

    partition: TopicPartition
    before: ReplicaSet
    after: ReplicaSet


def observe_outages(
    review: OutageReview, settings: Mapping[str, TopicSettings | Fault]
) -> Iterator[Observation]:
    """Yield, for each resource, observations about partitions that become unwritable during outages.

    These are the partitions that reject records during an outage after the plan, but not before it. If there
    are none, and fewer partitions than before reject records, yield an observation about the improvement.
    settings: the configs of `OutageReview.topics`.
    """
    by_resource: dict[str, list[PlacementChange]] = defaultdict(list)
    for placement in review.placements:
        by_resource[placement.resource].append(placement)
    for resource, placements in sorted(by_resource.items()):
        path = review.paths.get(resource)
        comparisons: list[_Comparison] = []
        unknown: dict[str, Fault | str] = {}
        for placement in placements:
            topic = placement.partition.topic
            min_isr = _find_min_isr(settings.get(topic))
            if isinstance(min_isr, Fault | str):
                unknown[topic] = min_isr
                continue
            before = ReplicaSet(placement.before, min_isr[0])
            after = ReplicaSet(placement.after, min_isr[1])
            comparisons.append(_Comparison(placement.partition, before, after))
        if unknown:
            yield _build_unknown(resource, path, unknown)
        yield from _observe_resource(resource, path, comparisons, review.racks)


def _observe_resource(
    resource: str, path: str | None, comparisons: Sequence[_Comparison], racks: Mapping[int, str]
) -> Iterator[Observation]:
    by_broker = compare_places(
        {each.partition: find_critical_brokers(each.before) for each in comparisons},
        {each.partition: find_critical_brokers(each.after) for each in comparisons},
    )
    by_rack = _compare_racks(comparisons, racks, by_broker.newly.keys())
    if by_broker.newly:
        yield _build_outage(resource, path, by_broker, "broker")
    if by_rack.newly:
        yield _build_outage(resource, path, by_rack, "rack")
    if by_broker.newly or by_rack.newly:
        return
    if by_broker.relieved:
        yield _build_outage(resource, path, by_broker, "broker")
    elif by_rack.relieved:
        yield _build_outage(resource, path, by_rack, "rack")


def _find_min_isr(settings: TopicSettings | Fault | None) -> tuple[int, int] | Fault | str:
    """Return ``min.insync.replicas`` before and after the plan, or the reason why it is unknown."""
    known = require_known(settings, MIN_ISR)
    if not isinstance(known, TopicSettings):
        return known
    return int(known.before.get(MIN_ISR, "1")), int(known.after.get(MIN_ISR, "1"))


def _compare_racks(
    comparisons: Sequence[_Comparison], racks: Mapping[int, str], reported: Collection[TopicPartition]
) -> WritabilityChange[str]:
    """Compare the racks whose outage makes a partition reject records, before and after the plan.

    Partitions with a replica on a broker without a rack are skipped.
    reported: the partitions that the observation about broker outages already contains; skipped as well.
    """
    judged = [
        each
        for each in comparisons
        if each.partition not in reported and racks.keys() >= {*each.before.replicas, *each.after.replicas}
    ]
    return compare_places(
        {each.partition: find_critical_racks(each.before, racks) for each in judged},
        {each.partition: find_critical_racks(each.after, racks) for each in judged},
    )


def _build_outage(
    resource: str, path: str | None, change: WritabilityChange[Place], kind: str
) -> Observation:
    """Return the observation about partitions that reject records during an outage.

    kind: ``broker`` or ``rack``.
    """
    text = f"{describe_outage(resource, change.after, change.total, kind)} (currently {change.before:,})."
    figures: dict[str, JsonValue] = {
        "down": kind,
        "partitions_total": change.total,
        "partitions_before": change.before,
        "partitions_after": change.after,
        "partitions_newly": len(change.newly),
    }
    if not change.newly:
        return Observation(resource, _WRITABLE, ObservationLevel.INFO, text, path, figures)
    worst, affected = change.find_worst_place()
    names = [str(partition) for partition in affected]
    figures |= {f"worst_{kind}": worst, "worst_partitions": len(names)}
    place = f"broker {worst}" if kind == "broker" else f"rack '{worst}'"
    text += f" An outage of {place} affects {format_names(names)}."
    return Observation(resource, _NOT_WRITABLE, ObservationLevel.EFFECT, text, path, figures)


def describe_outage(resource: str, rejecting: int, total: int, kind: str) -> str:
    """Return the main clause about the partitions that reject records during an outage, without a period.

    rejecting, total: the number of these partitions, and of all partitions. kind: ``broker`` or ``rack``.
    """
    is_one = rejecting == 1
    down = (
        f"any of {'its' if is_one else 'their'} brokers is down" if kind == "broker" else "one rack is down"
    )
    partitions = "partitions" if resource.startswith(f"{_TOPIC}/") else "moved partitions"
    verb = f"reject{'s' * is_one} records from producers with acks=all"
    return f"{rejecting:,} of {total:,} {partitions} {verb} if {down}"


def _build_unknown(resource: str, path: str | None, unknown: Mapping[str, Fault | str]) -> Observation:
    """Return the observation that it is unknown whether some topics are writable during outages."""
    topic = min(unknown)
    others = len(unknown) - 1
    more = f" and {format_count(others, 'other topic')}" if others else ""
    what = f"whether '{topic}'{more} can be written while a broker or a rack is down"
    return wording.build_unknown(resource, path, what, unknown[topic], right="DescribeConfigs")
