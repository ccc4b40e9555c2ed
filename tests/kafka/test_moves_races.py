"""Concurrent moves by several clients on real brokers: no replication factor grows, no throttle is lost."""

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.ids import ConfigResource, TopicPartition
from kdeclare.providers.kafka.reassignment.throttles import (
    FOLLOWER_REPLICAS_KEY,
    LEADER_REPLICAS_KEY,
    RATE_KEYS,
)
from kdeclare.sandbox import SandboxStatus
from tests.beds import APPEND, DELETE, KafkaBed, broker_resource, get_error, get_message, topic_resource
from tests.kafka.records import (
    REASSIGN,
    Replicas,
    RunningCommand,
    Throttles,
    Tools,
    expect,
    expect_no_changes,
    hold_before_reassign,
    open_cluster,
    write_reassignment_file,
)
from tests.kafka.test_bad_input import Project, wait_for_exit, wait_for_first_request
from tests.polling import retry_until_passes

pytestmark = pytest.mark.kafka

HERE, AWAY, ELSEWHERE = (1, 2, 3), (4, 5, 1), (2, 5, 3)
RATE = 500_000
"""Slow enough that moves of 8 MB to one broker take seconds, although Kafka does not throttle the data of the
first 11 s, and fast enough that a test can wait for them to finish."""


@dataclass
class Stage:
    """A project, another client, and Kafka's own tools."""

    project: Project
    bed: KafkaBed
    tools: Tools

    def codes(self, plan: str) -> list[str]:
        """Return the plan as JSON."""
        return [item["code"] for item in json.loads(plan)["diagnostics"]]

    def declare_move(self, targets: Mapping[TopicPartition, Replicas], **more: Any) -> None:
        """Declare one Reassignment of these partitions."""
        named = [{"topic": p.topic, "partition": p.partition, "replicas": r} for p, r in targets.items()]
        self.project.declare(("Reassignment", "move", {"partitions": named, **more}))

    def replicas(self, topic: str) -> list[Replicas]:
        """Return the described replicas."""
        return [p.replicas for p in self.bed.topic(topic).partitions]

    def in_flight(self, topic: str) -> list[int]:
        """Return the numbers of the partitions that are being moved."""
        return sorted(p.partition for p in self.bed.cluster.moves([topic]))

    def wait_for_rest(self, topic: str) -> None:
        """Wait until all moves of a topic have finished."""
        retry_until_passes(lambda: expect(not self.in_flight(topic)))


@pytest.fixture
def stage(five: SandboxStatus, tmp_path: Path) -> Iterator[Stage]:
    cluster = open_cluster(five.bootstrap)
    bed = KafkaBed(cluster, five.bootstrap)
    yield Stage(Project(tmp_path, five.bootstrap), bed, Tools(five.bootstrap))
    bed.clean()
    for broker in bed.brokers:
        resource = broker_resource(broker)
        for key in bed.overrides(resource).keys() & set(RATE_KEYS):
            bed.alter(resource, (key, DELETE, None))
    cluster.close()


# the races of KIP-860


@dataclass
class Race:
    """A move of another client from HERE to AWAY, held until it is released; ``at`` is its partition."""

    stage: Stage
    at: TopicPartition
    union: Replicas
    released: bool = False

    def release(self) -> None:
        """Let the move finish."""
        if not self.released:
            self.stage.bed.eventually(self.stage.bed.release_moves)
        self.released = True

    def is_over(self) -> bool:
        """Whether the controller lists no move."""
        return self.at not in self.stage.bed.cluster.moves([self.at.topic])

    def target(self) -> Replicas:
        """Return the target of the move."""
        return self.stage.bed.cluster.moves([self.at.topic])[self.at].target

    def expect_union_refused(self) -> None:
        """A client that takes the described replicas for the true ones is refused."""
        fault = self.stage.bed.move(self.at.topic, 0, self.union)
        assert get_error(fault) == "INVALID_REPLICATION_FACTOR"
        assert f"from 3 to {len(self.union)}" in get_message(fault)

    def expect_end(self, replicas: Replicas) -> None:
        """Check that the partition is on its target, with its original replication factor."""
        self.stage.wait_for_rest(self.at.topic)
        retry_until_passes(lambda: expect(self.stage.replicas(self.at.topic) == [replicas]))


def expect_throttle(bed: KafkaBed, broker: ConfigResource) -> None:
    """Whether a broker knows the throttle of `KafkaBed.hold_moves`."""
    assert bed.overrides(broker).get(RATE_KEYS[1]) == "1"


@pytest.fixture
def race(stage: Stage) -> Iterator[Race]:
    topic = stage.bed.create({0: HERE}, name=stage.bed.delete_at_end(stage.project.name("raced")))
    stage.bed.hold_moves(topic)
    for resource in map(broker_resource, stage.bed.brokers):  # each broker reports its own state
        retry_until_passes(partial(expect_throttle, stage.bed, resource))
    assert stage.bed.move(topic, 0, AWAY) is None
    retry_until_passes(lambda: expect(len(stage.replicas(topic)[0]) == 5))
    made = Race(stage, TopicPartition(topic, 0), stage.replicas(topic)[0])
    # 1 byte per second holds data that is not copied before the brokers know the throttle
    assert made.target() == AWAY
    yield made
    made.release()
    stage.wait_for_rest(topic)


def test_reassignment_based_on_described_union_is_refused(race: Race) -> None:
    """Both races: the plan uses the union seen during the move, and by a lagging describe after it."""
    assert set(race.union) == {1, 2, 3, 4, 5}
    race.expect_union_refused()
    assert race.target() == AWAY
    race.release()
    retry_until_passes(
        lambda: expect(race.is_over())
    )  # listed after the describe, and before it: no move is in flight
    race.expect_union_refused()
    race.expect_end(AWAY)


def test_plan_during_move_does_not_use_described_union(race: Race) -> None:
    stage, topic = race.stage, race.at.topic
    stage.project.topics("raced", replicationFactor=3)
    ran = stage.project.done("plan", "--format", "json")
    assert stage.codes(ran.out) == ["move-under-way"], ran.out
    assert json.loads(ran.out)["operations"] == []
    for wish in (
        {"partitions": [{"topic": topic, "partition": 0, "replicas": ELSEWHERE}]},
        {"partitions": [{"topic": topic, "partition": 0, "replicas": HERE}]},
        {"topics": [topic], "drain": [4]},
    ):
        stage.project.declare(("Reassignment", "move", wish))
        ran = stage.project("plan", "--format", "json")
        assert ran.code is ExitCode.DENIED, ran
        assert "move-in-flight" in stage.codes(ran.out), ran.out
        plan = json.loads(ran.out)
        assert plan["operations"] == []
        fields = [field for change in plan["changes"] for field in change["fields"]]
        assert {len(side) for f in fields for side in (f["before"], f["after"])} == {3}, ran.out
    stage.project.declare(("Reassignment", "move", {"topics": [topic], "drain": [2]}))
    ran = stage.project.done("plan", "--format", "json")  # the move is already in flight
    assert json.loads(ran.out)["operations"] == []
    assert race.target() == AWAY


def test_override_reassignments_redirects_move_of_other_client(race: Race) -> None:
    stage = race.stage
    stage.declare_move({race.at: ELSEWHERE})
    process = RunningCommand(stage.project.start("apply", "--yes", "--override-reassignments"))
    retry_until_passes(lambda: expect(process.check_running() and race.target() == ELSEWHERE))
    race.expect_union_refused()
    race.release()
    ran = process.wait_for_exit()
    assert ran.code is ExitCode.OK, ran
    expect_no_changes(stage.project)
    race.expect_end(ELSEWHERE)


def test_await_reassignments_waits_for_move_of_other_client(race: Race) -> None:
    stage = race.stage
    stage.declare_move({race.at: ELSEWHERE})
    process = RunningCommand(stage.project.start("apply", "--yes", "--await-reassignments"))
    retry_until_passes(lambda: expect(process.check_running() and '"event":"run"' in stage.project.journal()))
    assert race.target() == AWAY
    assert '"begin"' not in stage.project.journal()
    race.release()
    ran = process.wait_for_exit()
    assert ran.code is ExitCode.OK, ran
    expect_no_changes(stage.project)
    race.expect_end(ELSEWHERE)


# throttles of other clients


@dataclass
class ThrottledMove:
    """A topic whose partitions 0 and 2 kdeclare moves with a throttle, beside throttles of other clients."""

    stage: Stage
    topic: str
    others: Throttles

    def start(self) -> RunningCommand:
        """Apply until both partitions are being moved."""
        process = self.stage.project.start("apply", "--yes")
        wait_for_first_request(self.stage.project, process)
        heard = RunningCommand(process)
        retry_until_passes(
            lambda: expect(heard.check_running() and self.stage.in_flight(self.topic) == [0, 2]), every=0.02
        )
        return heard

    def kill_apply(self) -> None:
        """Kill an apply during its moves; its throttle is still set."""
        process = self.start()
        process.process.send_signal(signal.SIGKILL)
        process.process.wait(120)
        assert self.stage.in_flight(self.topic), "the moves finished before it was killed"
        followers = self.stage.bed.overrides(topic_resource(self.topic))[FOLLOWER_REPLICAS_KEY]
        assert "0:3" in (followers or "").split(",")
        assert self.stage.bed.overrides(broker_resource(5)).keys() == set(RATE_KEYS)

    def expect_others_only(self) -> None:
        """Check that the throttles of other clients are unchanged, and that no others are set."""
        assert self.stage.tools.throttles() == self.others


def prepare_throttled_move(stage: Stage) -> ThrottledMove:
    """Check that no throttle is set."""
    topic = stage.bed.create(
        {0: (1, 2), 1: (1, 2), 2: (2, 1)}, name=stage.bed.delete_at_end(stage.project.name("throttled"))
    )
    stage.bed.produce(topic, 120, 100_000)
    targets = {TopicPartition(topic, 0): (3, 4), TopicPartition(topic, 2): (4, 5)}
    stage.declare_move(targets, throttle=RATE)
    return ThrottledMove(stage, topic, {})


def prepare_move_with_foreign_throttle(stage: Stage) -> ThrottledMove:
    """Another client has moved partition 1 with Kafka's tool, and not removed its throttle yet.

    Broker 5 has no rate of that client. The client also throttles a replica that kdeclare will move.
    """
    topic = stage.bed.create(
        {0: (1, 2), 1: (1, 2), 2: (2, 1)}, name=stage.bed.delete_at_end(stage.project.name("throttled"))
    )
    file = write_reassignment_file(stage.project.folder / "theirs.json", {TopicPartition(topic, 1): (3, 4)})
    stage.tools.run(REASSIGN, "--execute", "--reassignment-json-file", file, "--throttle", str(RATE))
    stage.wait_for_rest(topic)
    assert stage.bed.alter(topic_resource(topic), (LEADER_REPLICAS_KEY, APPEND, "2:2")) is None
    stage.bed.produce(topic, 120, 100_000)
    targets = {TopicPartition(topic, 0): (3, 4), TopicPartition(topic, 2): (4, 5)}
    stage.declare_move(targets, throttle=2 * RATE)
    others = stage.tools.throttles()
    assert others.keys() == {f"topic {topic}", *(f"broker {n}" for n in (1, 2, 3, 4))}
    return ThrottledMove(stage, topic, others)


@pytest.mark.thorough
def test_move_keeps_throttles_of_other_clients(stage: Stage) -> None:
    it = prepare_move_with_foreign_throttle(stage)
    ran = it.start().wait_for_exit()
    assert ran.code is ExitCode.OK, ran
    assert "Throttle set by another client" in ran.out
    it.expect_others_only()
    assert stage.replicas(it.topic) == [(3, 4), (3, 4), (4, 5)]
    expect_no_changes(stage.project)


@pytest.mark.thorough
def test_failed_move_keeps_throttles_of_other_clients(stage: Stage) -> None:
    it = prepare_move_with_foreign_throttle(stage)
    with hold_before_reassign(stage.project, "apply", "--yes") as process:
        assert stage.bed.overrides(broker_resource(5)).keys() == set(RATE_KEYS)
        assert stage.bed.move(it.topic, 2, (2, 1, 3), grow=True) is None
        stage.wait_for_rest(it.topic)
    ran = process.wait_for_exit()
    assert ran.code is ExitCode.PARTIAL, ran
    assert "INVALID_REPLICATION_FACTOR" in ran.out
    it.expect_others_only()
    assert stage.replicas(it.topic) == [(3, 4), (3, 4), (2, 1, 3)]


def clean_up_with_status(it: ThrottledMove) -> None:
    """Wait for the moves."""
    ran = it.stage.project.done("status", "--watch")
    assert "was recovered" in ran.err, ran
    assert "Idle." in ran.out, ran


def clean_up_with_apply(it: ThrottledMove) -> None:
    """Moves in flight are not changes, so apply does not wait for them, and leaves the throttle set."""
    ran = it.stage.project.done("apply", "--yes")
    assert "was recovered" in ran.err + ran.out, ran
    it.stage.wait_for_rest(it.topic)
    it.stage.project.done("apply", "--yes")


@pytest.mark.parametrize(
    ("begin", "next_"),
    [
        (prepare_throttled_move, clean_up_with_status),
        pytest.param(prepare_move_with_foreign_throttle, clean_up_with_status, marks=pytest.mark.thorough),
        pytest.param(prepare_move_with_foreign_throttle, clean_up_with_apply, marks=pytest.mark.thorough),
    ],
)
def test_next_command_cleans_up_after_kill(
    stage: Stage, begin: Callable[[Stage], ThrottledMove], next_: Callable[[ThrottledMove], None]
) -> None:
    it = begin(stage)
    it.kill_apply()
    next_(it)
    it.expect_others_only()
    assert [set(r) for r in stage.replicas(it.topic)][::2] == [{3, 4}, {4, 5}]
    expect_no_changes(stage.project)


@pytest.mark.thorough
def test_throttle_left_by_kill_is_recognized_as_own(stage: Stage) -> None:
    """The next apply removes the rates of the killed one, and throttles its own move with its own rates."""
    it = prepare_throttled_move(stage)
    it.kill_apply()
    stage.wait_for_rest(it.topic)
    stage.declare_move({TopicPartition(it.topic, 1): (3, 5)}, throttle=RATE // 3)
    process = stage.project.start("apply", "--yes")
    retry_until_passes(lambda: expect(stage.in_flight(it.topic) == [1]), every=0.02)
    rates = [stage.bed.overrides(broker_resource(n)).keys() for n in (1, 2, 3, 5)]
    followers = stage.bed.overrides(topic_resource(it.topic))[FOLLOWER_REPLICAS_KEY]
    ran = wait_for_exit(process)
    assert ran.code is ExitCode.OK, ran
    assert "Throttle set by another client" not in ran.out
    assert rates == [set(RATE_KEYS)] * 4
    assert set((followers or "").split(",")) == {"1:3", "1:5"}
    it.expect_others_only()
