"""Misbehaving policies and clusters: they neither let a denied change pass nor deny another one."""

import time
from typing import Any

import pytest

from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.engine.planning.request import PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.deprecated import CreateTopicAdapter, CreateTopicPolicy
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.resource_checks import check_declared
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.test_policies import RecordingPolicy, make_policy, make_world, make_world_with_topics
from tests.engine.world import World, topic

ALLOW, DENY = VerdictOutcome.ALLOW, VerdictOutcome.DENY


def clear_mappings(request: Any) -> None:
    """Clears every mapping that it receives."""
    for state in (request.pre_request_state, request.post_request_state):
        if state is not None:
            state.configs.clear()
            state.replicas_assignments.clear()
    request.labels.clear()
    request.racks.clear()


def deny_long_retention(request: RequestMetadata) -> None:
    post = request.post_request_state
    assert request.racks
    assert post is not None
    assert post.replicas_assignments
    if int(post.configs.get("retention.ms", "0")) > 100:
        raise PolicyViolation("too long")


def test_policy_mutations_are_invisible_to_next_policy() -> None:
    world = make_world(
        ConfiguredPolicy("a", make_policy(clear_mappings).policy),
        ConfiguredPolicy("b", make_policy(deny_long_retention).policy),
    )
    long = topic("t", assignments={0: [1, 2]}, configs={"retention.ms": 5000})
    created = world.plan(long)
    assert [(v.policy, v.outcome) for v in created.verdicts] == [("a", ALLOW), ("b", DENY)]
    world.policies, policies = (), world.policies
    world.apply(long)
    world.policies = policies
    more = topic("t", assignments={0: [1, 2], 1: [2, 3]}, configs={"retention.ms": 5000})
    changed = world.plan(more)
    assert [(v.policy, v.outcome, v.message) for v in changed.verdicts] == [
        ("a", ALLOW, ""),
        ("b", DENY, "too long"),
    ]


class ReturningPolicy(TopicActionsPolicy):
    """Returns its verdict."""

    def validate(self, request: RequestMetadata) -> Any:
        return request.topic != "a"


def test_policy_that_returns_value_denies() -> None:
    run = make_world(make_policy(ReturningPolicy())).apply(topic("a", partitions=1), topic("b", partitions=1))
    assert [v.outcome for v in run.verdicts] == [DENY, DENY]
    assert (
        "returned False, but a policy must return None, or raise PolicyViolation" in run.verdicts[0].message
    )
    assert run.results == {}


def test_move_ending_during_evaluation_is_judged_by_its_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deny_three_replicas(request: RequestMetadata) -> None:
        post = request.post_request_state
        if post and post.replication_factor > 2:
            raise PolicyViolation(f"{post.replication_factor} replicas")

    world = make_world_with_topics(RecordingPolicy(), topic("t", assignments={0: [1, 2]}))
    plan = world.plan(topic("t", partitions=1, configs={"retention.ms": 9}))
    world.cluster.move_ticks, world.cluster.tick_on_poll = 1, False
    world.cluster.reassign({TopicPartition("t", 0): (3, 4)}, allow_replication_factor_change=False)
    read = world.cluster.topics

    def topics(*args: Any) -> Any:
        found = read(*args)
        world.cluster.tick(5)
        return found

    monkeypatch.setattr(world.cluster, "topics", topics)
    world.policies = (make_policy(deny_three_replicas),)
    assert [(v.outcome, v.message) for v in world.run(plan).verdicts] == [(ALLOW, "")]


def test_slow_cluster_reads_do_not_time_out_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    world.apply(*(topic(name, partitions=1) for name in "ab"))
    read = world.cluster.record_counts

    def read_slowly(names: Any) -> Any:
        time.sleep(0.5)
        return read(names)

    monkeypatch.setattr(world.cluster, "record_counts", read_slowly)
    monkeypatch.setattr("kdeclare.policy.isolation.LIMIT_S", 0.2)
    world.policies = (make_policy(lambda request: request.record_count),)
    plan = world.plan(*(topic(name, partitions=2) for name in "ab"))
    assert [v.outcome for v in plan.verdicts] == [ALLOW, ALLOW]


def test_delete_policy_reads_only_deleted_topics() -> None:
    world = make_world()
    world.apply(*(topic(f"t{n}", partitions=1) for n in range(5)))
    world.policies = (make_policy(lambda r: r.record_count, actions=frozenset({Action.DELETE})),)
    before = len(world.cluster.calls)
    kept = [topic(f"t{n}", partitions=1, configs={"retention.ms": 5}) for n in range(3)]
    world.plan(*kept, scope=PlanScope(allow_deletes=True))
    asked = [call.items for call in world.cluster.calls[before:] if call.method == "record_counts"]
    assert asked == [("t3", "t4")]


class RecordingCreateTopicPolicy(CreateTopicPolicy):
    """Records what the old interface shows."""

    def __init__(self) -> None:
        self.seen: list[CreateTopicPolicy.RequestMetadata] = []

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
        self.seen.append(request)


PLACED = {"partitions": 2, "replicationFactor": 2, "placement": {"strategy": "balanced-leaders"}}
COUNTS = {"partitions", "replicationFactor"}


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ({}, set()),
        ({"partitions": 2}, {"partitions"}),
        ({"partitions": 2, "replicationFactor": 2}, COUNTS),
        ({"partitions": 2, "replicationFactor": 2, "placement": {"strategy": "any"}}, COUNTS),
        ({"assignments": {0: [1, 2]}}, {*COUNTS, "assignments"}),
        (PLACED, {*COUNTS, "assignments"}),
    ],
)
def test_creation_has_same_changed_fields_in_check_and_plan(spec: dict[str, Any], changed: set[str]) -> None:
    seen: list[frozenset[str]] = []
    policy = make_policy(lambda request: seen.append(request.changed))
    declared = topic("t", **spec, configs={"retention.ms": 5})
    check_declared([policy], [declared])
    world = World(cluster=MemoryCluster({1: "a", 2: "b"}), policies=(policy,))
    world.plan(declared)
    assert seen == [{*changed, "configs.retention.ms"}] * 2


def test_create_topic_adapter_receives_placement_as_assignments() -> None:
    shown = RecordingCreateTopicPolicy()
    policy = make_policy(CreateTopicAdapter(shown))
    world = World(cluster=MemoryCluster({1: "a", 2: "b"}), policies=(policy,))
    world.plan(topic("t", **PLACED))
    [seen] = shown.seen
    assert (seen.num_partitions, seen.replication_factor) == (None, None)
    assert sorted(seen.replicas_assignments or ()) == [0, 1]
    assert check_declared([policy], [topic("t", **PLACED)]).open == (("test", "Topic/t"),)
