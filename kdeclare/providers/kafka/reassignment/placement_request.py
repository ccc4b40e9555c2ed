"""What a kind can ask of placement: the wish, and the function that answers it.

`providers.kafka.reassignment.placement.place` is the one that plans use.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, report_contradiction
from kdeclare.providers.kafka.live import Broker, KafkaState

Replicas = tuple[int, ...]
"""Broker ids, preferred leader first."""


class Strategy(StrEnum):
    """Where the replicas of a topic's partitions may be, in the words of topicctl.

    Each is a rule that an assignment keeps or breaks; one that is kept asks for nothing.
    """

    ANY = "any"  # anywhere
    BALANCED_LEADERS = "balanced-leaders"  # as many preferred leaders in every rack as in any other, ±1
    IN_RACK = "in-rack"  # each partition in one rack, that of its preferred leader
    CROSS_RACK = "cross-rack"  # each partition on as many racks as it can be
    STATIC = "static"  # as the assignments say
    STATIC_IN_RACK = "static-in-rack"  # partition i in rack `racks[i]`


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """What an assignment is to be like; the default wish is content with everything.

    partitions: how many each topic is to have; None is as many as it has.
    replication_factor: None is as many replicas as each partition has.
    strategy: the rule to keep; None spreads what has to be chosen over racks, and breaks up nothing
        that stays.
    racks: for STATIC_IN_RACK, the rack of each partition, in order.
    excluded_brokers: brokers that are to hold no replica (a drain). A broker that is not registered, too,
        where something of the partition changes anyway.
    rebalance: move replicas and preferred leaders until the brokers that may hold them are as even as can be
        (a rebalance).
    fixed: partitions that are to stay as they are, by topic.
    """

    partitions: int | None = None
    replication_factor: int | None = None
    strategy: Strategy | None = None
    racks: tuple[str, ...] = ()
    excluded_brokers: frozenset[int] = frozenset()
    rebalance: bool = False
    fixed: Mapping[str, frozenset[int]] | None = None


PLACEMENT_DESCRIPTION = "The rule that says which brokers hold the replicas."


class PlacementSpec(BaseModel):
    """The rule as a manifest states it; ``racks`` names the rack of each partition for static-in-rack."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    strategy: Annotated[
        Literal["any", "balanced-leaders", "in-rack", "cross-rack", "static", "static-in-rack"],
        Field(
            description="any: anywhere. balanced-leaders: as many preferred leaders in every rack. in-rack: "
            "each partition in one rack. cross-rack: each on as many racks as it can be. static: as "
            "assignments say. static-in-rack: in the racks named."
        ),
    ]
    racks: Annotated[list[str], Field(description="With static-in-rack, the rack of each partition.")] = []

    @property
    def rule(self) -> Strategy | None:
        """The strategy as a rule to be kept; what allows everything, or is said elsewhere, is none."""
        strategy = Strategy(self.strategy)
        return None if strategy in (Strategy.ANY, Strategy.STATIC) else strategy


@dataclass(frozen=True, slots=True)
class PlacementConstraint:
    """What a declared resource says of where the replicas of one topic are.

    brokers: those that it names for them. excluded_brokers, only: those that may hold none, and the only
    ones that may. strategy: the rule that it keeps. exact: it names the replicas of partitions. rebalance:
    it evens out.
    """

    brokers: frozenset[int] = frozenset()
    excluded_brokers: frozenset[int] = frozenset()
    only: frozenset[int] = frozenset()
    strategy: Strategy | None = None
    exact: bool = False
    rebalance: bool = False

    def explain_conflict(self, other: "PlacementConstraint") -> str:
        """Why both cannot hold, so that each apply would undo the other's work; empty where they can."""
        return self._explain_refusal(other) or other._explain_refusal(self)

    def _explain_refusal(self, other: "PlacementConstraint") -> str:
        if self.exact and (other.rebalance or other.strategy):
            return "one names the replicas of partitions, and the other arranges them"
        if self.rebalance and other.strategy and other.strategy is not self.strategy:
            return f"one evens out, and the other keeps the rule '{other.strategy}'"
        if self.strategy and other.strategy and self.strategy is not other.strategy:
            return f"one keeps the rule '{self.strategy}', and the other '{other.strategy}'"
        if conflicting_brokers := sorted(self.excluded_brokers & (other.brokers | other.only)):
            return f"one wants no replica on {conflicting_brokers}, and the other puts some there"
        if self.only and (conflicting_brokers := sorted(other.brokers - self.only)):
            return (
                f"one wants replicas on {sorted(self.only)} only, and the other "
                f"puts some on {conflicting_brokers}"
            )
        return ""


class PlacementError(ValueError):
    """What was asked for cannot be placed; the text says why."""


class Placer(Protocol):
    """Where replicas go."""

    def __call__(
        self, brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], request: PlacementRequest
    ) -> Mapping[str, tuple[Replicas, ...]]:
        """The replicas of every partition of every topic, in order. Pure and deterministic.

        brokers: all registered ones. current: the true replicas of the partitions that exist (never a
        described list during a move); a topic without any is new. Raises PlacementError.
        """


@dataclass(frozen=True, slots=True)
class PlacementContext:
    """The part of a plan's context that places replicas: what all resources of the plan share."""

    place: Placer


@runtime_checkable
class HasPlacementConstraints(Protocol):
    """A kind whose resources say where the replicas of topics are to be."""

    def find_placement_constraints(
        self, name: str, body: Any, topics: Iterable[str]
    ) -> Mapping[str, PlacementConstraint]:
        """What a resource says of where the replicas of which of these topics are to be."""


def find_constraints(resource: DesiredResource, topics: Iterable[str]) -> Mapping[str, PlacementConstraint]:
    """Return what a declared resource says of where the replicas of which of these topics are to be."""
    kind = _find_constraints_support(KINDS[resource.id.kind])
    return (
        kind.find_placement_constraints(resource.id.name, resource.body, topics) if kind is not None else {}
    )


@cache  # checks of protocols are slow, and a plan makes thousands of them
def _find_constraints_support(kind: object) -> HasPlacementConstraints | None:
    return kind if isinstance(kind, HasPlacementConstraints) else None


def check_placement_conflicts(
    declared: Iterable[DesiredResource], existing_topics: Iterable[str] = ()
) -> list[Diagnostic]:
    """Declared resources that cannot both have the replicas of a topic where they want them.

    existing_topics: topics that are known to exist; more of them can only add to what is found.
    """
    resources = sorted(declared, key=lambda d: (d.id.kind, d.id.name))
    topics = _list_topic_names(resources, existing_topics)
    constraints_by_topic: dict[str, list[tuple[DesiredResource, PlacementConstraint]]] = {}
    diagnostics: dict[tuple[ResourceId, ResourceId], Diagnostic] = {}
    for resource in resources:
        for topic, constraint in find_constraints(resource, topics).items():
            for other_resource, other_constraint in constraints_by_topic.setdefault(topic, []):
                if (resource.id, other_resource.id) not in diagnostics and (
                    conflict := constraint.explain_conflict(other_constraint)
                ):
                    diagnostics[resource.id, other_resource.id] = report_contradiction(
                        resource, other_resource, f"of topic {topic}, {conflict}"
                    )
            constraints_by_topic[topic].append((resource, constraint))
    return list(diagnostics.values())


def _list_topic_names(declared: Iterable[DesiredResource], existing_topics: Iterable[str]) -> frozenset[str]:
    """What can be a topic: those that are there, and whatever is declared."""
    return frozenset(existing_topics).union(d.id.name for d in declared)


def collect_excluded_brokers(
    declared: Iterable[DesiredResource], live: KafkaState
) -> dict[str, frozenset[int]]:
    """By topic, the brokers that are to hold no replica of it, whichever resource says so."""
    resources = list(declared)
    topics = _list_topic_names(resources, live.topics)
    broker_ids = frozenset(broker.id for broker in live.cluster.brokers)
    excluded_by_topic: dict[str, frozenset[int]] = {}
    for resource in resources:
        for topic, constraint in find_constraints(resource, topics).items():
            excluded_brokers = constraint.excluded_brokers | (
                broker_ids - constraint.only if constraint.only else frozenset()
            )
            excluded_by_topic[topic] = excluded_by_topic.get(topic, frozenset()) | excluded_brokers
    return excluded_by_topic
