"""The request for a placement of replicas, and the protocol of functions that compute a placement.

Plans use `providers.kafka.reassignment.load_aware_placer.LoadAwarePlacer`.
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
    """Placement rules for the replicas of a topic's partitions, with the names that topicctl uses.

    An assignment that satisfies the rule is not changed.
    """

    ANY = "any"  # any broker
    BALANCED_LEADERS = "balanced-leaders"  # equal numbers of preferred leaders in all racks, ±1
    IN_RACK = "in-rack"  # each partition in one rack, that of its preferred leader
    CROSS_RACK = "cross-rack"  # each partition on as many racks as possible
    STATIC = "static"  # as in the assignments
    STATIC_IN_RACK = "static-in-rack"  # partition i in rack `racks[i]`


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """The requirements for an assignment. The default request accepts every assignment.

    partitions: the number of partitions of each topic; None keeps the current number.
    replication_factor: the number of replicas of each partition; None keeps the current number.
    strategy: the rule to satisfy. With None, newly chosen replicas are spread over racks, and no other
        replica is moved.
    racks: for STATIC_IN_RACK, the rack of each partition, in order.
    excluded_brokers: brokers that must not hold replicas (a drain). If a partition changes anyway, its
        replicas on unregistered brokers are also replaced.
    rebalance: whether to move replicas and preferred leaders until they are spread as evenly as possible over
        the permitted brokers.
    fixed: partitions that must not change, by topic.
    """

    partitions: int | None = None
    replication_factor: int | None = None
    strategy: Strategy | None = None
    racks: tuple[str, ...] = ()
    excluded_brokers: frozenset[int] = frozenset()
    rebalance: bool = False
    fixed: Mapping[str, frozenset[int]] | None = None


PLACEMENT_DESCRIPTION = "The rule that determines which brokers hold the replicas."


class PlacementSpec(BaseModel):
    """The placement rule in a manifest. For static-in-rack, ``racks`` lists the rack of each partition."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    strategy: Annotated[
        Literal["any", "balanced-leaders", "in-rack", "cross-rack", "static", "static-in-rack"],
        Field(
            description="any: any brokers. balanced-leaders: equal numbers of preferred leaders in all "
            "racks. in-rack: each partition in one rack. cross-rack: each partition on as many racks as "
            "possible. static: the brokers in 'assignments'. static-in-rack: each partition in the rack that "
            "'racks' lists for the partition."
        ),
    ]
    racks: Annotated[list[str], Field(description="For static-in-rack: the rack of each partition.")] = []

    @property
    def rule(self) -> Strategy | None:
        """The rule to satisfy; None for strategies that allow everything or use assignments (any, static)."""
        strategy = Strategy(self.strategy)
        return None if strategy in (Strategy.ANY, Strategy.STATIC) else strategy


@dataclass(frozen=True, slots=True)
class PlacementConstraint:
    """The constraints of a declared resource on the replicas of one topic.

    brokers: the brokers that the resource assigns replicas to.
    excluded_brokers: the brokers that must not hold replicas.
    only: the only brokers that are allowed to hold replicas.
    strategy: the rule that the resource enforces.
    exact: whether the resource sets the replicas of individual partitions.
    rebalance: whether the resource spreads replicas evenly.
    """

    brokers: frozenset[int] = frozenset()
    excluded_brokers: frozenset[int] = frozenset()
    only: frozenset[int] = frozenset()
    strategy: Strategy | None = None
    exact: bool = False
    rebalance: bool = False

    def explain_conflict(self, other: "PlacementConstraint") -> str:
        """Return the reason why two constraints conflict; an empty string if they are compatible.

        Two resources with conflicting constraints would keep undoing each other's changes.
        """
        return self._explain_refusal(other) or other._explain_refusal(self)

    def _explain_refusal(self, other: "PlacementConstraint") -> str:
        if self.exact and (other.rebalance or other.strategy):
            return "one lists the replicas of partitions, and the other computes the replicas from a rule"
        if self.rebalance and other.strategy and other.strategy is not self.strategy:
            return f"one rebalances the replicas, and the other enforces the rule '{other.strategy}'"
        if self.strategy and other.strategy and self.strategy is not other.strategy:
            return f"one enforces the rule '{self.strategy}', and the other enforces '{other.strategy}'"
        if conflicting_brokers := sorted(self.excluded_brokers & (other.brokers | other.only)):
            return (
                f"one allows no replicas on brokers {conflicting_brokers}, but the other puts replicas there"
            )
        if self.only and (conflicting_brokers := sorted(other.brokers - self.only)):
            return (
                f"one allows replicas only on brokers {sorted(self.only)}, but the other puts replicas on "
                f"brokers {conflicting_brokers}"
            )
        return ""


class PlacementError(ValueError):
    """Raised if a placement request cannot be satisfied. The message gives the reason."""


class Placer(Protocol):
    """A function that computes assignments."""

    def __call__(
        self, brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], request: PlacementRequest
    ) -> Mapping[str, tuple[Replicas, ...]]:
        """Return the replicas of every partition of every topic, in order. Pure and deterministic.

        brokers: all registered brokers. current: the replicas of the existing partitions; for a partition
        that is moving, the target replicas of the move. A topic without partitions is new. Raises
        PlacementError.
        """


@dataclass(frozen=True, slots=True)
class PlacementContext:
    """The function that places replicas for a plan. All resources of the plan share it."""

    place: Placer


@runtime_checkable
class HasPlacementConstraints(Protocol):
    """A kind whose resources constrain the replicas of topics."""

    def find_placement_constraints(
        self, name: str, body: Any, topics: Iterable[str]
    ) -> Mapping[str, PlacementConstraint]:
        """Return the constraints of a resource on each of the topics. Omit topics without constraints."""


def find_constraints(resource: DesiredResource, topics: Iterable[str]) -> Mapping[str, PlacementConstraint]:
    """Return the constraints of a resource on each of the topics. Omit topics without constraints."""
    kind = _find_constraints_support(KINDS[resource.id.kind])
    return (
        kind.find_placement_constraints(resource.id.name, resource.body, topics) if kind is not None else {}
    )


@cache  # isinstance() with a protocol is slow, and a plan calls it thousands of times
def _find_constraints_support(kind: object) -> HasPlacementConstraints | None:
    return kind if isinstance(kind, HasPlacementConstraints) else None


def check_placement_conflicts(
    declared: Iterable[DesiredResource], existing_topics: Iterable[str] = ()
) -> list[Diagnostic]:
    """Report declared resources with conflicting constraints on the replicas of a topic.

    existing_topics: topics that are known to exist. With more topics, more conflicts can be found.
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
                        resource, other_resource, f"for topic {topic}, {conflict}"
                    )
            constraints_by_topic[topic].append((resource, constraint))
    return list(diagnostics.values())


def _list_topic_names(declared: Iterable[DesiredResource], existing_topics: Iterable[str]) -> frozenset[str]:
    """Return the names of the existing topics and of all declared resources, which include new topics."""
    return frozenset(existing_topics).union(d.id.name for d in declared)


def collect_excluded_brokers(
    declared: Iterable[DesiredResource], live: KafkaState
) -> dict[str, frozenset[int]]:
    """Return, by topic, the brokers that at least one resource excludes."""
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
