"""In-memory clusters with resources about many topics: their rows of both tables, and random ones."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from kdeclare.core.plans.state import State
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.engine.planning.request import PlanScope
from kdeclare.fleet.cluster_pass import ClusterTables
from kdeclare.fleet.tables.row_builder import (
    Row,
    build_declared_cluster_row,
    build_declared_row,
    build_excluded_row,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import PendingMoveCleanup
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.beds import all_created
from tests.connections import connections_to
from tests.engine.world import desired, topic
from tests.jsontypes import Json

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
A, B, GOLD = {"team": "a"}, {"team": "b"}, {"tier": "gold"}


def make_cluster(**topics: Sequence[tuple[int, ...]]) -> MemoryCluster:
    """Topics with the replicas of their partitions; reassignments continue until the next tick."""
    cluster = MemoryCluster(RACKS, cluster_id="id-1", move_ticks=5, tick_on_poll=False)
    for name, replicas in topics.items():
        new = NewTopic(name, None, None, dict(enumerate(replicas)), {})
        assert all_created(cluster.create_topics([new]))
    return cluster


def start_move(cluster: MemoryCluster, name: str, to: tuple[int, ...]) -> None:
    """Start the reassignment of a partition."""
    where = TopicPartition.parse(name)
    assert cluster.reassign({where: to}, allow_replication_factor_change=True) == {where: None}


def make_state(*moves: str, owned: Mapping[str, OwnedRecord] | None = None) -> State:
    """Build a state with resources by id, and partitions that kdeclare started to reassign."""
    return State("l", 1, "id-1", owned or {}, PendingMoveCleanup(moves=moves).merge_into({}))


def build_tables(
    cluster: MemoryCluster,
    declared: Sequence[DesiredResource],
    state: State | None = None,
    selector: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    name: str = "eu-1",
) -> tuple[list[Row], list[Row]]:
    """Return the rows of a cluster as in a task, its own rows first. errors: why topics could not be read."""
    scope = PlanScope(selector=selector or {})
    owned: Mapping[str, OwnedRecord] = state.resources if state else {}
    rows = [build_declared_cluster_row(name, {}, cleanup=state.pending_cleanup if state else None)]
    for item in declared:
        encoded = build_declared_row if scope.covers(item) else build_excluded_row
        rows.append(encoded(name, item, item.id, owned.get(str(item.id))))
    encoded = build_declared_row if scope.whole else build_excluded_row
    for text in sorted(owned.keys() - {str(item.id) for item in declared}):
        rows.append(encoded(name, None, ResourceId.parse(text), owned[text]))
    live = list(read_live_rows(connections_to(cluster), name, {}, NOW))
    for row in live:
        if row["kind"] == "Topic" and row["name"] in (errors or {}):
            row |= {"body": None, "error": (errors or {})[row["name"]]}
    return rows, live


def build_cluster_tables(
    cluster: MemoryCluster, declared: Sequence[DesiredResource], **more: Any
) -> ClusterTables:
    """Return the same as one value."""
    (own, *mine), (itself, *theirs) = build_tables(cluster, declared, **more)
    assert own["kind"] == itself["kind"] == CLUSTER
    return ClusterTables(own["name"], own["owned"], itself["body"], mine, theirs)


class RandomCluster:
    """Generate a cluster with resources about many topics, its declarations and its state."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.cluster = make_cluster(
            **{f"t.{n}": self._make_assignment() for n in range(5) if self._is_drawn(0.8)}
        )
        self.own = [self._start_move(name) for name in list(self.cluster.topics()) if self._is_drawn(0.2)]
        self.declared = [*self._make_topics(), *self._make_reassignments()]
        self.state = make_state(
            *(name for name in self.own if self._is_drawn(0.6)), owned=self._make_records()
        )

    def _is_drawn(self, share: float) -> bool:
        return self.random.random() < share

    def _choose_brokers(self, size: int) -> list[int]:
        return self.random.sample(list(RACKS), size)

    def _make_assignment(self) -> list[tuple[int, ...]]:
        size = self.random.randint(1, 3)
        return [tuple(self._choose_brokers(size)) for _ in range(self.random.randint(1, 4))]

    def _start_move(self, name: str) -> str:
        (first, *_) = self.cluster.topics([name])[name].partitions
        start_move(self.cluster, f"{name}-0", tuple(self._choose_brokers(len(first.replicas))))
        return f"{name}-0"

    def _choose_labels(self) -> Mapping[str, str]:
        return self.random.choice([A, GOLD, {**A, **GOLD}])

    def _make_topics(self) -> Iterator[DesiredResource]:
        for number in range(6):
            if self._is_drawn(0.7):
                spec: dict[str, Any] = {"partitions": self.random.randint(1, 6)}
                if self._is_drawn(0.5):
                    strategy = self.random.choice(["cross-rack", "in-rack", "balanced-leaders"])
                    factor = {"in-rack": 1}.get(strategy, self.random.randint(1, 3))
                    spec |= {"placement": {"strategy": strategy}, "replicationFactor": factor}
                yield topic(f"t.{number}", labels=self._choose_labels(), **spec)

    def _make_reassignments(self) -> Iterator[DesiredResource]:
        names = [f"t.{n}" for n in range(6)]
        for number in range(self.random.randint(0, 3)):
            labels = self._choose_labels()
            topics = self.random.choice([["/.*/"], ["/t\\.[0-2]/"], self.random.sample(names, 2)])
            spec: dict[str, Any] = self.random.choice(
                [
                    {"topics": topics, "drain": self._choose_brokers(1)},
                    {"topics": topics, "rebalance": True},
                    {"topics": topics, "targetBrokers": self._choose_brokers(3)},
                    {"topics": topics, "placement": {"strategy": "cross-rack"}},
                    {"partitions": [self._make_target(name) for name in self.random.sample(names, 2)]},
                ]
            )
            yield desired("Reassignment", f"r{number}", labels, **spec)
        # a pattern that matches everything, so that a plan reads all reassignments, as a snapshot does
        yield desired("Reassignment", "z", {**A, **GOLD}, topics=["/.*/"], targetBrokers=list(RACKS))

    def _make_target(self, name: str) -> dict[str, Any]:
        return {"topic": name, "partition": self.random.randint(0, 4), "replicas": self._choose_brokers(2)}

    def _make_records(self) -> dict[str, Json]:
        names = [f"Topic/t.{n}" for n in range(7) if self._is_drawn(0.4)]
        return {name: TopicRecord(partitions=1) for name in names}
