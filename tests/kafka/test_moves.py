"""Moves of many replicas on real brokers; the result is checked with Kafka's own tools."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import Cluster
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed, get_error, get_message
from tests.kafka.records import (
    ClusterView,
    Replicas,
    Tools,
    expect,
    expect_no_changes,
    hold_before_reassign,
    open_cluster,
    set_pace,
)
from tests.kafka.test_bad_input import Project
from tests.polling import retry_until_passes

pytestmark = pytest.mark.kafka

TOPICS = 100
RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}


@pytest.fixture(scope="module")
def tools(five: SandboxStatus) -> Tools:
    return Tools(five.bootstrap)


@pytest.fixture(scope="module")
def cluster(five: SandboxStatus) -> Iterator[Cluster]:
    opened = open_cluster(five.bootstrap)
    yield opened
    opened.close()


@pytest.fixture
def bed(cluster: Cluster, five: SandboxStatus) -> Iterator[KafkaBed]:
    made = KafkaBed(cluster, five.bootstrap)
    yield made
    made.clean()


@pytest.fixture
def project(five: SandboxStatus, tmp_path: Path) -> Project:
    return Project(tmp_path, five.bootstrap)


@dataclass
class HundredTopics:
    """A project with a hundred topics, and other topics that a test declares."""

    project: Project
    tools: Tools
    factor: int = 2
    seen: ClusterView | None = None

    def declare(self, **reassignment: Any) -> None:
        """Declare the topics, and one Reassignment if it has a spec."""
        topics = [
            (
                "Topic",
                self.project.name(f"t{n:02}"),
                {"partitions": 1 + n % 3, "replicationFactor": self.factor},
            )
            for n in range(TOPICS)
        ]
        more = [("Reassignment", "move", reassignment)] if reassignment else []
        self.project.declare(*topics, *more)

    def apply(self) -> ClusterView:
        """Apply the manifests; check that no changes and no cleanup are left."""
        ran = self.project.done("apply", "--yes")
        assert "Throttle set by another client" not in ran.out, "no throttles are left"
        expect_no_changes(self.project)
        return self.describe()

    def describe(self) -> ClusterView:
        """Return the output of Kafka's tools once no move is in flight."""
        self.seen = self.tools.wait_for_rest()
        return self.seen

    @property
    def last(self) -> ClusterView:
        """Return their last output."""
        return self.seen or self.describe()


@pytest.fixture(scope="module")
def hundred(
    five: SandboxStatus, tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HundredTopics]:
    made = HundredTopics(Project(tmp_path_factory.mktemp("hundred"), five.bootstrap), tools)
    set_pace(made.project, throttle="50MiB/s", batchSize=80)
    made.declare()
    made.project.done("apply", "--yes")
    yield made
    opened = open_cluster(five.bootstrap)
    opened.delete_topics(dict.fromkeys([n for n in opened.topics() if n.startswith(made.project.prefix)]))
    opened.close()


def find_changes(before: ClusterView, after: ClusterView) -> dict[TopicPartition, tuple[Replicas, Replicas]]:
    """Return the partitions whose replicas or order of replicas changed."""
    now = after.replicas
    assert before.replicas.keys() == now.keys()
    return {p: (old, now[p]) for p, old in before.replicas.items() if now[p] != old}


def count_replicas(seen: ClusterView) -> dict[int, int]:
    """Return the number of replicas by broker."""
    return {b: sum(b in replicas for replicas in seen.replicas.values()) for b in RACKS}


def count_leaders(seen: ClusterView) -> dict[int, int]:
    """Return the number of partitions by leader."""
    return {b: sum(d.leader == b for d in seen.partitions.values()) for b in RACKS}


def is_even(counts: Mapping[int, int]) -> bool:
    return max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.thorough
def test_replication_factor_of_hundred_topics_goes_up_and_down(hundred: HundredTopics) -> None:
    before = hundred.last
    hundred.factor = 3
    hundred.declare()
    up = hundred.apply()
    for was, now in find_changes(before, up).values():
        assert now[:2] == was, "existing replicas stay, in their order"
        assert len({RACKS[b] for b in now}) == 3, "one replica per rack"
    assert {len(replicas) for replicas in up.replicas.values()} == {3}
    hundred.factor = 2
    hundred.declare()
    down = hundred.apply()
    assert {len(replicas) for replicas in down.replicas.values()} == {2}
    for was, now in find_changes(up, down).values():
        assert set(now) < set(was)
        assert len({RACKS[b] for b in now}) == 2


def test_broker_is_drained_and_cluster_rebalanced(hundred: HundredTopics) -> None:
    before = hundred.last
    hundred.declare(topics=["/.*/"], drain=[5])
    drained = hundred.apply()
    assert count_replicas(drained)[5] == 0
    moved = find_changes(before, drained)
    assert moved.keys() == {p for p, replicas in before.replicas.items() if 5 in replicas}
    for was, now in moved.values():
        assert [b for b in now if b in was] == [b for b in was if b != 5], "kept replicas keep their order"
        assert len({RACKS[b] for b in now}) == len({RACKS[b] for b in was})
    hundred.declare(topics=["/.*/"], rebalance=True)
    balanced = hundred.apply()
    assert is_even(count_replicas(balanced)), count_replicas(balanced)
    assert is_even(count_leaders(balanced)), count_leaders(balanced)


@pytest.mark.thorough
def test_reassignment_with_expected_replicas_is_rolled_back(hundred: HundredTopics, tmp_path: Path) -> None:
    before = hundred.last
    names = [TopicPartition(hundred.project.name(f"t{n:02}"), 0) for n in range(0, TOPICS, 5)]
    # every other partition gets a new preferred leader, and the others a new broker
    wanted: dict[TopicPartition, Replicas] = {}
    for number, name in enumerate(names):
        first, second = before.replicas[name]
        elsewhere = next(b for b in RACKS if b not in (first, second))
        wanted[name] = (second, first) if number % 2 else (elsewhere, first)
    partitions = [
        {"topic": p.topic, "partition": 0, "replicas": r, "expectedReplicas": before.replicas[p]}
        for p, r in wanted.items()
    ]
    hundred.declare(partitions=partitions, throttle="20MiB/s", batchSize=7)
    after = hundred.apply()
    assert {p: now for p, (_, now) in find_changes(before, after).items()} == wanted
    verified = hundred.tools.verify(tmp_path, wanted)
    assert verified.count("is completed") == len(wanted), verified
    hundred.project.done("rollback", "--yes")
    assert find_changes(before, hundred.describe()) == {}


def test_broker_refuses_other_factor_and_moves_the_rest(bed: KafkaBed) -> None:
    name = bed.create({0: (1, 2), 1: (1, 2), 2: (1, 2)})
    one, two, three = (TopicPartition(name, n) for n in range(3))
    targets: dict[TopicPartition, Replicas | None] = {one: (3, 1, 2), two: (4, 3), three: (5,)}
    answers = bed.cluster.reassign(targets, allow_replication_factor_change=False)
    assert (get_error(answers[one]), answers[two], get_error(answers[three])) == (
        "INVALID_REPLICATION_FACTOR",
        None,
        "INVALID_REPLICATION_FACTOR",
    )
    assert "from 2 to 3" in get_message(answers[one]), get_message(answers[one])
    assert "from 2 to 1" in get_message(answers[three]), get_message(answers[three])

    def moved() -> None:
        assert not bed.cluster.moves([name])
        assert [p.replicas for p in bed.topic(name).partitions] == [(1, 2), (4, 3), (1, 2)]

    retry_until_passes(moved)


def test_broker_guard_holds_if_factor_changed_after_plan(project: Project, bed: KafkaBed) -> None:
    name = bed.create({0: (1, 2), 1: (1, 2)}, name=bed.delete_at_end(project.name("a")))
    partitions = [{"topic": name, "partition": n, "replicas": [3, 4]} for n in range(2)]
    project.declare(("Reassignment", "move", {"partitions": partitions}))
    project.done("plan", "--out", "it.plan")
    with hold_before_reassign(project, "apply", "it.plan", "--yes") as process:
        assert bed.move(name, 1, (1, 2, 5), grow=True) is None
        retry_until_passes(lambda: expect(set(bed.topic(name).partitions[1].isr) == {1, 2, 5}))
        retry_until_passes(lambda: expect(not bed.cluster.moves([name])))
    ran = process.wait_for_exit()
    assert ran.code is ExitCode.PARTIAL, ran
    assert "INVALID_REPLICATION_FACTOR" in ran.out, ran
    assert f"{name}-1" in ran.out
    assert "from 3 to 2" in ran.out

    def moved() -> None:
        assert not bed.cluster.moves([name])
        assert [p.replicas for p in bed.topic(name).partitions] == [(3, 4), (1, 2, 5)]

    retry_until_passes(moved)
    again = project("apply", "--yes")
    assert again.code is ExitCode.DENIED, again
    assert "would change from 3 to 2" in again.out
