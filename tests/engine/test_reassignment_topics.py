"""Reassignments by rule, and topics with a placement: the target state is reached and kept."""

from collections import Counter
from typing import Any

import pytest

from kdeclare.core.diagnostics import Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome
from tests.engine.moving import (
    RACKS,
    MovingWorld,
    assigned_topic,
    create_topics,
    find_result,
    list_codes,
    list_leaders,
    list_moves_in_flight,
    list_replicas,
    list_verbs,
    move_as_other_client,
    reassignment,
)
from tests.engine.world import World, desired, topic
from tests.jsontypes import dump_args

SIX: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


def rule(*topics: str, name: str = "rule", **more: Any) -> DesiredResource:
    return desired("Reassignment", name, topics=list(topics), **more)


def check_settled(world: World, *declared: DesiredResource) -> None:
    """Check that no change is left, and that apply does nothing."""
    plan = world.plan(*declared)
    assert (plan.changes, plan.operations) == ((), ())
    assert plan_outcome(plan).headline.startswith("No changes.")
    world.cluster.calls.clear()
    world.apply(*declared)
    assert world.cluster.requests() == []


def list_used_brokers(world: World, name: str) -> set[int]:
    return {broker for r in list_replicas(world, name) for broker in r}


def list_racks(world: World, name: str) -> list[set[str | None]]:
    racks = {b.id: b.rack for b in world.cluster.describe().brokers}
    return [{racks[broker] for broker in r} for r in list_replicas(world, name)]


# Drain and targetBrokers.


def test_drain_removes_replicas_and_touches_nothing_else() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3], [1, 2, 4]], u=[[3, 4]], other=[[3, 1]])
    wanted = rule("t", "u", drain=[3])
    plan = world.plan(*kept, wanted)
    assert plan.summary.reassign == 2
    assert world.run(plan).complete
    assert 3 not in list_used_brokers(world, "t") | list_used_brokers(world, "u")
    assert list_replicas(world)[0][:2] == (1, 2)
    assert list_replicas(world)[1] == (1, 2, 4)
    assert [len(r) for r in list_replicas(world, "u")] == [2]
    assert list_replicas(world, "other") == [(3, 1)]
    check_settled(world, *kept, wanted)


def test_drain_of_leader_elects_new_leader() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[3, 1, 2]])
    world.slow_moves(3)
    assert world.apply(*kept, rule("t", drain=[3])).complete
    assert list_leaders(world) == [list_replicas(world)[0][0]]
    assert 3 not in list_used_brokers(world, "t")


def test_drain_of_several_brokers() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2], [2, 3], [3, 1]])
    wanted = rule("t", drain=[1, 2])
    assert world.apply(*kept, wanted).complete
    assert list_used_brokers(world, "t") <= {3, 4, 5}
    assert [len(r) for r in list_replicas(world)] == [2, 2, 2]
    check_settled(world, *kept, wanted)


def test_drain_that_leaves_too_few_brokers_is_an_error() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]])
    plan = world.plan(*kept, rule("t", drain=[3, 4, 5]))
    assert "no-placement" in list_codes(plan)
    assert plan_outcome(plan).exit_code is ExitCode.ERROR
    assert plan.operations == ()


def test_drain_of_removed_broker_needs_no_change() -> None:
    """The manifest can stay after the broker was removed."""
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]])
    check_settled(world, *kept, rule("t", drain=[9]))
    (problem,) = world.plan(*kept, rule("t", drain=[9])).diagnostics
    assert (problem.code, problem.severity) == ("unknown-broker", Severity.WARNING)
    assert "the brokers [9], which are not registered" in problem.detail


def test_target_brokers_hold_all_replicas() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2], [4, 5], [2, 3]])
    wanted = rule("t", targetBrokers=[1, 2, 3])
    assert world.apply(*kept, wanted).complete
    assert list_used_brokers(world, "t") <= {1, 2, 3}
    assert (list_replicas(world)[0], list_replicas(world)[2]) == ((1, 2), (2, 3))
    check_settled(world, *kept, wanted)


def test_unknown_target_broker_is_an_error() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2]])
    plan = world.plan(*kept, rule("t", targetBrokers=[1, 2, 9]))
    assert "unknown-broker" in list_codes(plan)
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_rollback_of_drain_restores_replica_lists() -> None:
    world = MovingWorld()
    before = [[1, 2, 3], [3, 2, 1], [2, 4, 5], [5, 3, 1]]
    kept = create_topics(world, t=before)
    assert world.apply(*kept, rule("t", drain=[3])).complete
    assert world.rollback().complete
    assert list_replicas(world) == [tuple(r) for r in before]
    assert list_leaders(world) == [r[0] for r in before]


# Rebalance and placement.


def test_rebalance_evens_out_replicas_and_leaders() -> None:
    world = MovingWorld(MemoryCluster(SIX))
    kept = create_topics(world, t=[[1, 3, 5]] * 12)
    wanted = rule("t", rebalance=True)
    assert world.apply(*kept, wanted).complete
    held = Counter(broker for r in list_replicas(world) for broker in r)
    assert set(held.values()) == {6}
    assert Counter(list_leaders(world)) == dict.fromkeys(SIX, 2)
    assert all(len(racks) == 3 for racks in list_racks(world, "t"))
    check_settled(world, *kept, wanted)


def test_rebalance_stays_within_target_brokers() -> None:
    world = MovingWorld(MemoryCluster(SIX))
    kept = create_topics(world, t=[[1, 2]] * 6)
    wanted = rule("t", rebalance=True, targetBrokers=[1, 3, 5])
    assert world.apply(*kept, wanted).complete
    assert Counter(b for r in list_replicas(world) for b in r) == {1: 4, 3: 4, 5: 4}
    check_settled(world, *kept, wanted)


@pytest.mark.parametrize("strategy", ["cross-rack", "in-rack", "balanced-leaders"])
def test_placement_rule_moves_existing_topics(strategy: str) -> None:
    world = MovingWorld(MemoryCluster(SIX))
    kept = create_topics(world, t=[[1, 2], [1, 3], [1, 2]], u=[[1, 2], [2, 1], [1, 4]])
    wanted = rule("t", "u", placement={"strategy": strategy})
    plan = world.plan(*kept, wanted)
    assert plan.summary.reassign > 0
    assert world.run(plan).complete
    for name in ("t", "u"):
        if strategy == "cross-rack":
            assert [len(racks) for racks in list_racks(world, name)] == [2, 2, 2]
        elif strategy == "in-rack":
            assert [len(racks) for racks in list_racks(world, name)] == [1, 1, 1]
        else:
            first = Counter(SIX[r[0]] for r in list_replicas(world, name))
            assert first == {"a": 1, "b": 1, "c": 1}
    check_settled(world, *kept, wanted)


def test_placement_rule_already_met_needs_no_change() -> None:
    world = MovingWorld(MemoryCluster(SIX))
    kept = create_topics(world, t=[[1, 3], [2, 5]])
    check_settled(world, *kept, rule("t", placement={"strategy": "cross-rack"}))


# Topics.


def test_patterns_match_whole_names_and_internal_topics() -> None:
    world = MovingWorld()
    create_topics(
        world, **{name: [[3, 1]] for name in ("pay.a", "pay.b", "xpay.a", "pay", "__consumer_offsets")}
    )
    world.cluster.mark_internal("__consumer_offsets")
    wanted = rule(r"/pay\..*/", "/__.*/", drain=[3])
    plan = world.plan(wanted)
    moved = {
        p for op in plan.operations if op.verb == "partitions.reassign" for p in dump_args(op)["partitions"]
    }
    assert moved == {"pay.a-0", "pay.b-0", "__consumer_offsets-0"}


def test_unmatched_pattern_is_accepted_but_unknown_name_is_error() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2]])
    check_settled(world, *kept, rule("/nothing-like-it/", drain=[3]))
    plan = world.plan(*kept, rule("t", "nowhere", drain=[2]))
    (problem,) = (d for d in plan.diagnostics if d.is_error)
    assert problem.code == "unknown-partition"
    assert "nowhere" in problem.detail
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_drain_of_topic_created_in_same_plan_waits_for_next_apply() -> None:
    world = MovingWorld()
    declared = [topic("t", partitions=4, replicationFactor=3), rule("t", drain=[3])]
    plan = world.plan(*declared)
    assert not plan.has_errors
    world.run(plan)
    assert world.apply(*declared).complete
    assert 3 not in list_used_brokers(world, "t")
    check_settled(world, *declared)


# Moves in flight.


def test_drain_accepts_suitable_move_in_flight() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3], [1, 2, 3]])
    wanted = rule("t", drain=[3])
    world.hold_moves()
    move_as_other_client(world, "t-0", [1, 2, 5])
    plan = world.plan(*kept, wanted)
    assert "move-in-flight" not in list_codes(plan)
    (move,) = (op for op in plan.operations if op.verb == "partitions.reassign")
    assert set(dump_args(move)["partitions"]) == {"t-1"}
    world.run(plan, wait=False)
    assert list_moves_in_flight(world.cluster) == {"t-0", "t-1"}
    check_settled(world, *kept, wanted)
    world.finish_moves()
    assert list_replicas(world)[0] == (1, 2, 5)
    check_settled(world, *kept, wanted)


def test_rebalance_ignores_moves_in_flight() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2]] * 5)
    world.hold_moves()
    move_as_other_client(world, "t-0", [2, 3])
    plan = world.plan(*kept, rule("t", rebalance=True))
    assert "move-in-flight" not in list_codes(plan)
    moved = {
        p for op in plan.operations if op.verb == "partitions.reassign" for p in dump_args(op)["partitions"]
    }
    assert moved
    assert "t-0" not in moved


def test_drain_is_denied_while_replicas_move_to_drained_broker() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2]])
    world.hold_moves()
    move_as_other_client(world, "t-0", [1, 3])
    plan = world.plan(*kept, rule("t", drain=[3]))
    assert "move-in-flight" in list_codes(plan)
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert plan.operations == ()


# Two resources with different targets for the same topic.


def test_factor_change_and_drain_of_one_topic_converge() -> None:
    world = MovingWorld()
    create_topics(world, t=[[1, 2], [2, 3], [3, 4]])
    declared = [topic("t", partitions=3, replicationFactor=3), rule("t", drain=[3])]
    plan = world.plan(*declared)
    (diagnostic,) = (d for d in plan.diagnostics if d.code == "moved-by-another")
    assert (diagnostic.severity, diagnostic.resource) == (Severity.WARNING, "Reassignment/rule")
    assert world.run(plan).complete
    for _ in range(2):
        if not world.plan(*declared).has_changes:
            break
        assert world.apply(*declared).complete
    assert [len(r) for r in list_replicas(world)] == [3, 3, 3]
    assert 3 not in list_used_brokers(world, "t")
    check_settled(world, *declared)


def test_two_drains_of_one_topic_converge() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]] * 3)
    declared = [*kept, rule("t", name="a", drain=[2]), rule("/t/", name="b", drain=[3])]
    assert "moved-by-another" in list_codes(world.plan(*declared))
    for _ in range(3):
        world.apply(*declared)
    assert list_used_brokers(world, "t") == {1, 4, 5}
    check_settled(world, *declared)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_factor_change_of_hundred_topics_is_applied_and_rolled_back(before: int, after: int) -> None:
    world = MovingWorld(MemoryCluster(SIX))
    names = [f"t{n:03}" for n in range(100)]

    def make_topics(factor: int) -> list[DesiredResource]:
        configs = {"min.insync.replicas": str(factor - 1)}
        return [topic(n, partitions=3, replicationFactor=factor, configs=configs) for n in names]

    assert world.apply(*make_topics(before)).complete
    world.slow_moves(3)
    plan = world.plan(*make_topics(after))
    assert plan.summary.reassign == 300
    run = world.run(plan)
    assert run.complete
    assert all([len(r) for r in list_replicas(world, n)] == [after] * 3 for n in names)
    held = Counter(broker for n in names for r in list_replicas(world, n) for broker in r)
    assert max(held.values()) - min(held.values()) <= after * 300 / 6 * 0.2
    assert {world.overrides(n)["min.insync.replicas"] for n in names} == {str(after - 1)}
    check_settled(world, *make_topics(after))
    assert world.rollback(run.run_id).complete
    assert all([len(r) for r in list_replicas(world, n)] == [before] * 3 for n in names)
    assert {world.overrides(n)["min.insync.replicas"] for n in names} == {str(before - 1)}


# Topics with a placement.


@pytest.mark.parametrize(
    ("strategy", "more"),
    [
        ("cross-rack", {}),
        ("in-rack", {}),
        ("balanced-leaders", {}),
        ("static-in-rack", {"racks": ["c", "a", "b"]}),
    ],
)
def test_new_topic_is_placed_by_strategy(strategy: str, more: dict[str, Any]) -> None:
    world = MovingWorld(MemoryCluster(SIX))
    wanted = topic("t", partitions=3, replicationFactor=2, placement={"strategy": strategy, **more})
    assert world.apply(wanted).complete
    check_rule(world, strategy)
    check_settled(world, wanted)


@pytest.mark.parametrize(
    ("strategy", "more"),
    [
        ("cross-rack", {}),
        ("in-rack", {}),
        ("balanced-leaders", {}),
        ("static-in-rack", {"racks": ["c", "a", "b"]}),
    ],
)
def test_topic_violating_strategy_is_moved_and_rolled_back(strategy: str, more: dict[str, Any]) -> None:
    world = MovingWorld(MemoryCluster(SIX))
    before = [[1, 2], [1, 3], [1, 2]]
    create_topics(world, t=before)
    wanted = topic("t", partitions=3, replicationFactor=2, placement={"strategy": strategy, **more})
    assert world.plan(wanted).has_changes
    world.slow_moves(3)
    run = world.apply(wanted)
    assert run.complete
    check_rule(world, strategy)
    check_settled(world, wanted)
    assert world.rollback(run.run_id).complete
    assert list_replicas(world) == [tuple(r) for r in before]


def check_rule(world: World, strategy: str) -> None:
    racks = list_racks(world, "t")
    if strategy == "cross-rack":
        assert [len(r) for r in racks] == [2, 2, 2]
    elif strategy == "in-rack":
        assert [len(r) for r in racks] == [1, 1, 1]
    elif strategy == "static-in-rack":
        assert racks == [{"c"}, {"a"}, {"b"}]
    else:
        assert Counter(SIX[r[0]] for r in list_replicas(world)) == {"a": 1, "b": 1, "c": 1}


def test_strategy_with_new_factor_and_partitions() -> None:
    world = MovingWorld(MemoryCluster(SIX))
    create_topics(world, t=[[1, 2], [2, 1]])
    wanted = topic("t", partitions=4, replicationFactor=3, placement={"strategy": "cross-rack"})
    world.slow_moves(3)
    assert world.apply(wanted).complete
    assert [len(r) for r in list_racks(world, "t")] == [3, 3, 3, 3]
    check_settled(world, wanted)


def test_static_in_rack_with_too_few_racks_is_an_error() -> None:
    world = MovingWorld(MemoryCluster(SIX))
    placement = {"strategy": "static-in-rack", "racks": ["a"]}
    plan = world.plan(topic("t", partitions=2, replicationFactor=2, placement=placement))
    assert "no-placement" in list_codes(plan)
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_move_by_another_client_is_drift() -> None:
    world = MovingWorld(MemoryCluster(SIX))
    wanted = topic("t", partitions=1, replicationFactor=2, placement={"strategy": "in-rack"})
    world.apply(wanted)
    before = list_replicas(world)[0]
    away = next(b for b in SIX if SIX[b] != SIX[before[0]])
    move_as_other_client(world, "t-0", [before[0], away])
    plan = world.plan(wanted)
    assert plan.summary.reassign == 1
    assert world.run(plan).complete
    assert [len(r) for r in list_racks(world, "t")] == [1]


def test_partitions_of_many_topics_need_one_operation() -> None:
    """One operation for any number of topics, so that one pace applies to all of them."""
    world = MovingWorld(MemoryCluster(RACKS))
    kept = create_topics(world, **{f"t{n}": [[3, 1, 2]] * 2 for n in range(20)})
    plan = world.plan(*kept, rule("/t.*/", drain=[3]))
    assert list_verbs(plan).count("partitions.reassign") == 1
    run = world.run(plan)
    assert find_result(run, "partitions.reassign").error is None


def test_drain_of_fenced_broker_removes_replicas() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]])
    world.cluster.fence(3)
    wanted = rule("t", drain=[3], throttle=1000)
    assert world.apply(*kept, wanted).complete
    assert 3 not in list_used_brokers(world, "t")
    check_settled(world, *kept, wanted)


def test_explicit_reassignment_and_drain_converge() -> None:
    world = MovingWorld()
    world.apply(assigned_topic("t", [1, 2, 3], [1, 2, 3]))
    declared = [topic("t"), reassignment(("t-0", [1, 2, 4])), rule("t", drain=[3])]
    for _ in range(2):
        world.apply(*declared)
    assert list_replicas(world)[0] == (1, 2, 4)
    assert 3 not in list_used_brokers(world, "t")
    check_settled(world, *declared)


# Conflicting declarations.


@pytest.mark.parametrize(
    ("wanted", "rule"),
    [
        (topic("t", assignments={0: [1, 2]}), {"drain": [2]}),
        (topic("t", assignments={0: [1, 2]}), {"targetBrokers": [2, 3]}),
        (topic("t", assignments={0: [1, 2]}), {"rebalance": True}),
        (
            topic("t", partitions=1, replicationFactor=2, placement={"strategy": "in-rack"}),
            {"rebalance": True},
        ),
        (
            topic("t", partitions=1, replicationFactor=2, placement={"strategy": "in-rack"}),
            {"placement": {"strategy": "cross-rack"}},
        ),
    ],
)
def test_incompatible_placement_rules_are_contradiction(
    wanted: DesiredResource, rule: dict[str, Any]
) -> None:
    world = World(MemoryCluster({1: "a", 2: "b", 3: "a", 4: "b"}))
    world.apply(topic("t", partitions=1, replicationFactor=2))
    plan = world.plan(wanted, desired("Reassignment", "rule", topics=["/.*/"], **rule))
    assert "contradiction" in [d.code for d in plan.diagnostics if d.is_error]


def test_drain_and_target_brokers_are_contradiction() -> None:
    world = World(MemoryCluster({1: "a", 2: "b", 3: "a", 4: "b"}))
    world.apply(topic("t", partitions=1, replicationFactor=2))
    plan = world.plan(
        topic("t", partitions=1, replicationFactor=2),
        desired("Reassignment", "off-2", topics=["t"], drain=[2]),
        desired("Reassignment", "on-2", topics=["/t/"], targetBrokers=[2, 3]),
    )
    (problem,) = [d for d in plan.diagnostics if d.is_error]
    assert "one allows no replicas on brokers [2], but the other puts replicas there" in problem.detail


@pytest.mark.parametrize(
    ("wanted", "rule"),
    [
        (topic("t", assignments={0: [1, 3]}), {"drain": [2]}),
        (topic("t", partitions=1, replicationFactor=2), {"rebalance": True}),
        (
            topic("t", partitions=1, replicationFactor=2, placement={"strategy": "cross-rack"}),
            {"rebalance": True, "placement": {"strategy": "cross-rack"}},
        ),
        (
            topic("t", partitions=1, replicationFactor=2, placement={"strategy": "cross-rack"}),
            {"drain": [2]},
        ),
    ],
)
def test_compatible_placement_rules_converge(wanted: DesiredResource, rule: dict[str, Any]) -> None:
    world = World(MemoryCluster({1: "a", 2: "b", 3: "a", 4: "b"}))
    world.apply(topic("t", partitions=1, replicationFactor=2))
    declared = wanted, desired("Reassignment", "rule", topics=["/.*/"], **rule)
    for _ in range(2):
        world.apply(*declared)
    assert not world.plan(*declared).has_changes


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"rebalance": True}, {"drain": [3]}),
        ({"rebalance": True}, {"drain": [1]}),
        ({"rebalance": True}, {"targetBrokers": [1, 2, 4]}),
        ({"placement": {"strategy": "in-rack"}}, {"drain": [3]}),
        ({"placement": {"strategy": "in-rack"}}, {"drain": [1]}),
        ({"placement": {"strategy": "in-rack"}}, {"targetBrokers": [1, 4]}),
        ({"placement": {"strategy": "in-rack"}}, {"targetBrokers": [1, 2, 4]}),
        ({"placement": {"strategy": "cross-rack"}}, {"drain": [3]}),
        ({"placement": {"strategy": "balanced-leaders"}}, {"drain": [3]}),
        ({"placement": {"strategy": "any"}}, {"rebalance": True}),
    ],
    ids=str,
)
def test_two_rules_of_one_topic_fail_or_converge_in_two_applies(a: dict[str, Any], b: dict[str, Any]) -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2], [1, 2], [3, 4], [3, 5], [3, 1], [1, 4]])
    declared = [*kept, rule("t", name="a", **a), rule("t", name="b", **b)]
    if world.plan(*declared).has_errors:
        return
    for _ in range(2):
        assert world.apply(*declared).complete
    check_settled(world, *declared)


# What one resource declares about its topic does not affect another topic.


def test_target_brokers_of_two_topics_are_independent() -> None:
    world = MovingWorld()
    kept = create_topics(world, a=[[1, 2]], b=[[1, 2]])
    declared = [
        *kept,
        rule("a", name="a", targetBrokers=[1, 2, 3]),
        rule("b", name="b", targetBrokers=[4, 5]),
    ]
    assert world.apply(*declared).complete
    assert list_replicas(world, "a") == [(1, 2)]
    assert list_used_brokers(world, "b") == {4, 5}
    check_settled(world, *declared)


def test_broker_drained_of_one_topic_can_hold_another() -> None:
    world = MovingWorld()
    a, _ = create_topics(world, a=[[1, 2]], b=[[1, 2]])
    declared = [a, rule("a", drain=[5]), topic("b", partitions=1, replicationFactor=5)]
    assert world.apply(*declared).complete
    assert list_used_brokers(world, "b") == {1, 2, 3, 4, 5}
    check_settled(world, *declared)


def test_target_brokers_do_not_limit_placement_of_new_topic() -> None:
    world = MovingWorld()
    kept = create_topics(world, a=[[1, 2]])
    new = topic("n", partitions=3, replicationFactor=3, placement={"strategy": "cross-rack"})
    declared = [*kept, rule("a", targetBrokers=[1, 2]), new]
    assert world.apply(*declared).complete
    assert list_racks(world, "n") == [{"a", "b", "c"}] * 3
    check_settled(world, *declared)


def test_unmatched_pattern_is_warned_of() -> None:
    world = World(MemoryCluster({1: "a", 2: "b"}))
    world.apply(topic("orders", partitions=1, replicationFactor=1))
    plan = world.plan(desired("Reassignment", "off", topics=["/order/", "/ord.*/"], drain=[2]))
    assert [(d.code, d.severity) for d in plan.diagnostics if d.resource == "Reassignment/off"] == [
        ("no-such-topics", Severity.WARNING)
    ]
    assert "/order/ does not match the whole name of any topic" in plan.diagnostics[0].detail
