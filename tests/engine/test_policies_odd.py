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
from tests.engine.test_policies import Recorder, held, lasting, world
from tests.engine.world import World, topic

ALLOW, DENY = VerdictOutcome.ALLOW, VerdictOutcome.DENY


def spoil(request: Any) -> None:
    """Clears every mapping that it receives."""
    for state in (request.pre_request_state, request.post_request_state):
        if state is not None:
            state.configs.clear()
            state.replicas_assignments.clear()
    request.labels.clear()
    request.racks.clear()


def strict(request: RequestMetadata) -> None:
    post = request.post_request_state
    assert request.racks
    assert post is not None
    assert post.replicas_assignments
    if int(post.configs.get("retention.ms", "0")) > 100:
        raise PolicyViolation("too long")


def test_policy_mutations_are_invisible_to_next_policy() -> None:
    here = world(ConfiguredPolicy("a", held(spoil).policy), ConfiguredPolicy("b", held(strict).policy))
    long = topic("t", assignments={0: [1, 2]}, configs={"retention.ms": 5000})
    created = here.plan(long)
    assert [(v.policy, v.outcome) for v in created.verdicts] == [("a", ALLOW), ("b", DENY)]
    here.policies, policies = (), here.policies
    here.apply(long)
    here.policies = policies
    more = topic("t", assignments={0: [1, 2], 1: [2, 3]}, configs={"retention.ms": 5000})
    changed = here.plan(more)
    assert [(v.policy, v.outcome, v.message) for v in changed.verdicts] == [
        ("a", ALLOW, ""),
        ("b", DENY, "too long"),
    ]


class Slip(TopicActionsPolicy):
    """Returns its verdict."""

    def validate(self, request: RequestMetadata) -> Any:
        return request.topic != "a"


def test_policy_that_returns_value_denies() -> None:
    run = world(held(Slip())).apply(topic("a", partitions=1), topic("b", partitions=1))
    assert [v.outcome for v in run.verdicts] == [DENY, DENY]
    assert (
        "returned False, but a policy must return None, or raise PolicyViolation" in run.verdicts[0].message
    )
    assert run.results == {}


def test_move_ending_during_evaluation_is_judged_by_its_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def two(request: RequestMetadata) -> None:
        post = request.post_request_state
        if post and post.replication_factor > 2:
            raise PolicyViolation(f"{post.replication_factor} replicas")

    here = lasting(Recorder(), topic("t", assignments={0: [1, 2]}))
    plan = here.plan(topic("t", partitions=1, configs={"retention.ms": 9}))
    here.cluster.move_ticks, here.cluster.tick_on_poll = 1, False
    here.cluster.reassign({TopicPartition("t", 0): (3, 4)}, allow_replication_factor_change=False)
    read = here.cluster.topics

    def topics(*args: Any) -> Any:
        found = read(*args)
        here.cluster.tick(5)
        return found

    monkeypatch.setattr(here.cluster, "topics", topics)
    here.policies = (held(two),)
    assert [(v.outcome, v.message) for v in here.run(plan).verdicts] == [(ALLOW, "")]


def test_slow_cluster_reads_do_not_time_out_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    here = world()
    here.apply(*(topic(name, partitions=1) for name in "ab"))
    read = here.cluster.record_counts

    def slowly(names: Any) -> Any:
        time.sleep(0.5)
        return read(names)

    monkeypatch.setattr(here.cluster, "record_counts", slowly)
    monkeypatch.setattr("kdeclare.policy.isolation.LIMIT_S", 0.2)
    here.policies = (held(lambda request: request.record_count),)
    plan = here.plan(*(topic(name, partitions=2) for name in "ab"))
    assert [v.outcome for v in plan.verdicts] == [ALLOW, ALLOW]


def test_delete_policy_reads_only_deleted_topics() -> None:
    here = world()
    here.apply(*(topic(f"t{n}", partitions=1) for n in range(5)))
    here.policies = (held(lambda r: r.record_count, actions=frozenset({Action.DELETE})),)
    before = len(here.cluster.calls)
    kept = [topic(f"t{n}", partitions=1, configs={"retention.ms": 5}) for n in range(3)]
    here.plan(*kept, scope=PlanScope(allow_deletes=True))
    asked = [call.items for call in here.cluster.calls[before:] if call.method == "record_counts"]
    assert asked == [("t3", "t4")]


class Shown(CreateTopicPolicy):
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
    policy = held(lambda request: seen.append(request.changed))
    declared = topic("t", **spec, configs={"retention.ms": 5})
    check_declared([policy], [declared])
    here = World(cluster=MemoryCluster({1: "a", 2: "b"}), policies=(policy,))
    here.plan(declared)
    assert seen == [{*changed, "configs.retention.ms"}] * 2


def test_create_topic_adapter_receives_placement_as_assignments() -> None:
    shown = Shown()
    policy = held(CreateTopicAdapter(shown))
    here = World(cluster=MemoryCluster({1: "a", 2: "b"}), policies=(policy,))
    here.plan(topic("t", **PLACED))
    [seen] = shown.seen
    assert (seen.num_partitions, seen.replication_factor) == (None, None)
    assert sorted(seen.replicas_assignments or ()) == [0, 1]
    assert check_declared([policy], [topic("t", **PLACED)]).open == (("test", "Topic/t"),)
