"""Throttles of moves: set while replicas are copied, then removed; other clients' entries are kept."""

from collections.abc import Callable
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.provider.plan_options import choose_options
from kdeclare.core.provider.registry import OPERATION_TYPES
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.recovery import recover_runs
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import Move
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import PendingMoveCleanup, ThrottledReplicas
from kdeclare.providers.kafka.testing import Crash, MemoryCluster
from kdeclare.report.outcome import run_outcome
from kdeclare.testing.faults import FaultyOperations
from tests.cases import case
from tests.connections import connections_to
from tests.engine.moving import (
    FOLLOWER_RATE,
    FOLLOWERS,
    LEADER_RATE,
    LEADERS,
    RACKS,
    MovingWorld,
    Throttles,
    assigned_topic,
    build_rates,
    call_at_poll,
    create_topics,
    find_result,
    list_codes,
    list_moves_in_flight,
    list_replicas,
    list_throttles,
    list_verbs,
    move_as_other_client,
    reassignment,
    record_polls,
    set_configs,
)
from tests.engine.world import desired, topic
from tests.jsontypes import dump_args

T0: Throttles = {"TOPIC/t": {LEADERS: "0:1,0:2,0:3", FOLLOWERS: "0:4"}, **build_rates(1000, 1, 2, 3, 4)}
"""The throttle configs for a move of t-0 from [1, 2, 3] to [1, 2, 4] at 1000 bytes per second."""


def throttled_reassignment(**more: Any) -> DesiredResource:
    return reassignment(("t-0", [1, 2, 4]), **{"throttle": 1000, **more})


def make_world() -> tuple[MovingWorld, list[DesiredResource]]:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3], [1, 2, 3]])
    return world, kept


def list_alterations(world: MovingWorld) -> list[str]:
    """Return the resources of config changes, request by request."""
    return [item for call in world.cluster.requests("alter_configs") for item in call.items]


# What is set, and for how long.


def test_throttle_is_set_during_move_and_removed_after() -> None:
    world, kept = make_world()
    world.slow_moves()
    before = world.cluster.overrides()
    plan = world.plan(*kept, throttled_reassignment())
    assert list_verbs(plan) == ["throttle.set", "partitions.reassign", "throttle.clear"]
    seen = record_polls(world)
    assert world.run(plan).complete
    moving = [look.throttles for look in seen if look.in_flight]
    assert len(moving) >= 4
    assert all(found == T0 for found in moving)
    assert world.cluster.overrides() == before
    assert world.overrides("t") == {}
    assert not world.pending_cleanup
    assert list_replicas(world) == [(1, 2, 4), (1, 2, 3)]


@case("THR-02")
def test_throttled_sources_of_overridden_move_exclude_union() -> None:
    world = MovingWorld()
    kept = create_topics(world, foo=[[1, 2, 3]])
    world.hold_moves()
    move_as_other_client(world, "foo-0", [1, 2, 4])
    where = TopicPartition("foo", 0)
    assert world.cluster.moves()[where] == Move((1, 2, 4, 3), (4,), (3,))
    wanted = reassignment(("foo-0", [1, 2, 5]), throttle=1000)
    world.apply(
        *kept, wanted, scope=PlanScope(options=choose_options(override_reassignments=True)), wait=False
    )
    expected = {"TOPIC/foo": {LEADERS: "0:1,0:2,0:3", FOLLOWERS: "0:5"}, **build_rates(1000, 1, 2, 3, 5)}
    assert list_throttles(world.cluster) == expected
    world.finish_moves()
    world.recover()
    assert list_replicas(world, "foo") == [(1, 2, 5)]
    assert list_throttles(world.cluster) == {}


def test_throttled_sources_after_awaited_move_are_its_target() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]])
    world.slow_moves()
    move_as_other_client(world, "t-0", [2, 3, 4])
    wanted = reassignment(("t-0", [1, 3, 5]), throttle=1000)
    plan = world.plan(*kept, wanted, scope=PlanScope(options=choose_options(await_reassignments=True)))
    seen = record_polls(world)
    assert world.run(plan).complete
    assert list_replicas(world) == [(1, 3, 5)]
    last = [look.throttles for look in seen if look.in_flight][-1]
    assert last == {
        "TOPIC/t": {LEADERS: "0:2,0:3,0:4", FOLLOWERS: "0:1,0:5"},
        **build_rates(1000, 1, 2, 3, 4, 5),
    }
    assert list_throttles(world.cluster) == {}


def test_move_without_copies_is_not_throttled() -> None:
    world, kept = make_world()
    wanted = reassignment(("t-0", [3, 2, 1]), ("t-1", [1, 2]), throttle=9, allowReplicationFactorChange=True)
    plan = world.plan(*kept, wanted)
    assert not [verb for verb in list_verbs(plan) if verb.startswith("throttle")]
    world.cluster.calls.clear()
    assert world.run(plan).complete
    assert list_replicas(world) == [(3, 2, 1), (1, 2)]
    assert list_alterations(world) == []


def test_move_without_throttle_is_reported() -> None:
    world, kept = make_world()
    assert list_codes(world.plan(*kept, reassignment(("t-0", [1, 2, 4])))) == ["no-throttle"]
    assert list_codes(world.plan(*kept, throttled_reassignment())) == []


def test_project_throttle_applies_to_factor_change() -> None:
    world, _ = make_world()
    world.pace = Pace(throttle=500)
    world.slow_moves()
    seen = record_polls(world)
    assert world.apply(topic("t", partitions=2, replicationFactor=4)).complete
    assert [len(r) for r in list_replicas(world)] == [4, 4]
    moving = [look.throttles for look in seen if look.in_flight]
    assert len(moving) >= 4
    for found in moving:
        added = {r[3] for r in list_replicas(world)}
        assert found == {
            "TOPIC/t": {
                LEADERS: "0:1,0:2,0:3,1:1,1:2,1:3",
                FOLLOWERS: ",".join(f"{n}:{r[3]}" for n, r in enumerate(list_replicas(world))),
            },
            **build_rates(500, 1, 2, 3, *added),
        }
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_manifest_throttle_overrides_project_throttle() -> None:
    world, kept = make_world()
    world.pace = Pace(throttle=500)
    world.hold_moves()
    world.apply(*kept, throttled_reassignment(), wait=False)
    assert list_throttles(world.cluster) == T0


@pytest.mark.slow
def test_very_large_topic_is_throttled_completely() -> None:
    world = MovingWorld(MemoryCluster(dict.fromkeys(range(100001, 100006))))
    count = 1500
    kept = create_topics(world, t=[[100_001, 100_002]] * count)
    world.hold_moves()
    world.cluster.move_ticks = 2
    wanted = reassignment(*((f"t-{n}", [100_001, 100_003]) for n in range(count)), throttle=1000)
    world.apply(*kept, wanted, wait=False)
    followers = ",".join(f"{n}:100003" for n in range(count))
    assert len(followers) < 30_000
    lists = {LEADERS: "*", FOLLOWERS: followers}
    during_it = {"TOPIC/t": lists, **build_rates(1000, 100_001, 100_002, 100_003)}
    assert list_throttles(world.cluster) == during_it
    world.cluster.tick()
    world.recover()
    assert list_throttles(world.cluster) == during_it
    world.cluster.tick()
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


# Throttles of other clients.


OTHERS: Throttles = {
    "TOPIC/t": {LEADERS: "1:2,7:7", FOLLOWERS: "0:9"},
    "BROKER/2": {LEADER_RATE: "77"},
    "BROKER/4": {FOLLOWER_RATE: "88"},
    "BROKER/5": {LEADER_RATE: "99", FOLLOWER_RATE: "99"},
}


def set_foreign_throttles(world: MovingWorld) -> None:
    for entity, values in OTHERS.items():
        set_configs(world, entity, values)


def run_to_success(world: MovingWorld, kept: list[DesiredResource]) -> ApplyResult:
    return world.apply(*kept, throttled_reassignment())


def run_refused(world: MovingWorld, kept: list[DesiredResource]) -> ApplyResult:
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-0")
    return world.apply(*kept, throttled_reassignment())


def run_with_fail_fast(world: MovingWorld, kept: list[DesiredResource]) -> ApplyResult:
    plan = world.plan(*kept, throttled_reassignment(), topic("new", partitions=1, replicationFactor=1))
    world.cluster.faults.fail(Fault("INVALID_REQUEST", "No."), method="create_topics", item="new")
    return world.run(plan, fail_fast=True)


def run_and_stop(world: MovingWorld, kept: list[DesiredResource]) -> ApplyResult:
    world.hold_moves()
    call_at_poll(world, 3, lambda _: world.stop.set())
    return world.apply(*kept, throttled_reassignment())


def run_without_waiting(world: MovingWorld, kept: list[DesiredResource]) -> ApplyResult:
    world.hold_moves()
    return world.apply(*kept, throttled_reassignment(), wait=False)


def run_and_cancel(world: MovingWorld, kept: list[DesiredResource]) -> ApplyResult:
    world.hold_moves()
    call_at_poll(world, 3, lambda _: move_as_other_client(world, "t-0", None))
    return world.apply(*kept, throttled_reassignment())


def run_into_timeout(world: MovingWorld, kept: list[DesiredResource]) -> ApplyResult:
    world.hold_moves()
    return world.apply(*kept, throttled_reassignment(), move_timeout_s=30)


ENDINGS = [
    run_to_success,
    run_refused,
    run_with_fail_fast,
    run_and_stop,
    run_without_waiting,
    run_and_cancel,
    run_into_timeout,
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_throttles_of_others_are_unchanged_after_any_outcome(
    ending: Callable[[MovingWorld, list[DesiredResource]], ApplyResult],
) -> None:
    world, kept = make_world()
    world.slow_moves(3)
    set_foreign_throttles(world)
    before = world.cluster.overrides()
    seen = record_polls(world)
    ending(world, kept)
    moving = [look.throttles for look in seen if look.in_flight] or [list_throttles(world.cluster)]
    if ending not in (run_refused, run_with_fail_fast):
        for found in moving:
            assert found["TOPIC/t"] == {LEADERS: "1:2,7:7,0:1,0:2,0:3", FOLLOWERS: "0:9,0:4"}
            assert found["BROKER/2"] == {LEADER_RATE: "77", FOLLOWER_RATE: "1000"}
            assert found["BROKER/4"] == {LEADER_RATE: "1000", FOLLOWER_RATE: "88"}
    world.clear_interrupt()
    world.finish_moves()
    world.recover()
    assert world.cluster.overrides() == before
    assert not world.pending_cleanup


@pytest.mark.parametrize("ending", ENDINGS)
def test_throttle_is_removed_after_any_outcome(
    ending: Callable[[MovingWorld, list[DesiredResource]], ApplyResult],
) -> None:
    world, kept = make_world()
    world.slow_moves(3)
    ending(world, kept)
    world.clear_interrupt()
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_plan_reports_effective_throttles_of_others() -> None:
    world, kept = make_world()
    set_foreign_throttles(world)
    plan = world.plan(*kept, throttled_reassignment())
    found = [(d.code, d.subject) for d in plan.diagnostics]
    assert found == [("foreign-throttle", "2"), ("foreign-throttle", "4")]
    assert "77 bytes per second" in plan.diagnostics[0].detail
    assert "88 bytes per second" in plan.diagnostics[1].detail


def test_wildcard_throttle_of_others_is_kept() -> None:
    world, kept = make_world()
    set_configs(world, "TOPIC/t", {LEADERS: "*", FOLLOWERS: "*"})
    world.hold_moves()
    world.apply(*kept, throttled_reassignment(), wait=False)
    during_it = {"TOPIC/t": {LEADERS: "*", FOLLOWERS: "*"}, **build_rates(1000, 1, 2, 3, 4)}
    assert list_throttles(world.cluster) == during_it
    assert not world.recover().run
    assert (
        list_throttles(world.cluster) == during_it
    )  # the move needs the rates although no list of ours does
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {"TOPIC/t": {LEADERS: "*", FOLLOWERS: "*"}}
    assert not world.pending_cleanup


def test_rate_changed_by_others_during_move_is_kept() -> None:
    world, kept = make_world()
    world.slow_moves()
    call_at_poll(world, 2, lambda _: set_configs(world, "BROKER/1", {LEADER_RATE: "5"}))
    call_at_poll(world, 3, lambda _: set_configs(world, "TOPIC/t", {LEADERS: "0:1,0:2,0:3,1:1"}))
    assert world.apply(*kept, throttled_reassignment()).complete
    assert list_throttles(world.cluster) == {"BROKER/1": {LEADER_RATE: "5"}, "TOPIC/t": {LEADERS: "1:1"}}
    assert not world.pending_cleanup


def test_rate_set_by_others_after_plan_skips_move() -> None:
    world, kept = make_world()
    plan = world.plan(*kept, throttled_reassignment())
    set_configs(world, "BROKER/1", {LEADER_RATE: "5"})
    run = world.run(plan, skip_stale=True)
    assert find_result(run, "throttle.set").status is Status.STALE
    assert find_result(run, "partitions.reassign").status is Status.SKIPPED
    assert list_throttles(world.cluster) == {"BROKER/1": {LEADER_RATE: "5"}}
    assert list_replicas(world)[0] == (1, 2, 3)


def test_list_element_added_by_others_after_plan_is_kept() -> None:
    world, kept = make_world()
    plan = world.plan(*kept, throttled_reassignment())
    set_configs(world, "TOPIC/t", {LEADERS: "1:1"})
    assert world.run(plan).complete
    assert list_throttles(world.cluster) == {"TOPIC/t": {LEADERS: "1:1"}}


# When the move is refused, or continues.


@case("THR-08")
def test_refused_move_leaves_no_throttle() -> None:
    """Kafka's own tool leaves it set."""
    world, kept = make_world()
    plan = world.plan(*kept, throttled_reassignment())
    world.cluster.faults.run_before(
        lambda _: move_as_other_client(world, "t-0", [1, 2, 3, 5]), method="reassign"
    )
    world.cluster.calls.clear()
    run = world.run(plan)
    assert find_result(run, "partitions.reassign").error == "INVALID_REPLICATION_FACTOR"
    assert "TOPIC/t" in list_alterations(world)  # it was set for a moment
    assert find_result(run, "throttle.clear").status is Status.DONE
    assert list_throttles(world.cluster) == {}
    assert world.pending_cleanup.throttles == {}
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    world.recover()
    assert not world.pending_cleanup


def test_partly_failed_throttle_is_removed_and_skips_move() -> None:
    world, kept = make_world()
    plan = world.plan(*kept, throttled_reassignment())
    world.cluster.faults.fail(Fault("INVALID_REQUEST", "No."), method="alter_configs", item="BROKER/3")
    run = world.run(plan)
    assert find_result(run, "throttle.set").error == "INVALID_REQUEST"
    assert "BROKER/3" in find_result(run, "throttle.set").message
    assert find_result(run, "partitions.reassign").status is Status.SKIPPED
    assert find_result(run, "throttle.clear").status is Status.DONE
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup
    assert list_replicas(world)[0] == (1, 2, 3)


def test_throttle_stays_after_fail_fast_until_moves_complete() -> None:
    """If a request is refused, other partitions may still be moving (KIP-455)."""
    world, kept = make_world()
    world.slow_moves()
    wanted = reassignment(("t-0", [1, 2, 4]), ("t-1", [1, 2, 4]), throttle=1000)
    plan = world.plan(*kept, wanted)
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-0")
    seen = record_polls(world)
    run = world.run(plan, fail_fast=True)
    assert find_result(run, "partitions.reassign").status is Status.FAILED
    moving = [look.throttles for look in seen if look.in_flight == {"t-1"}]
    assert len(moving) >= 4
    assert all(found["TOPIC/t"][FOLLOWERS] == "0:4,1:4" for found in moving)
    assert list_replicas(world) == [(1, 2, 3), (1, 2, 4)]
    assert list_throttles(world.cluster) == {}


def test_interrupted_run_leaves_throttle_to_later_command() -> None:
    world, kept = make_world()
    run = run_and_stop(world, kept)
    assert run.interrupted
    assert find_result(run, "partitions.reassign").status is Status.STARTED
    assert find_result(run, "throttle.clear").status is Status.STARTED
    assert list_throttles(world.cluster) == T0
    assert world.pending_cleanup == PendingMoveCleanup(
        throttles={
            "TOPIC/t": {
                LEADERS: ThrottledReplicas(("0:1", "0:2", "0:3"), True),
                FOLLOWERS: ThrottledReplicas(("0:4",), True),
            },
            **build_rates(1000, 1, 2, 3, 4),
        },
        moves=("t-0",),
    )
    world.clear_interrupt()
    world.cluster.faults.clear()
    runs = world.store.runs()
    assert world.recover().ongoing == ("t-0",)
    assert world.store.runs() == runs  # nothing was done
    assert list_throttles(world.cluster) == T0
    world.cluster.tick(99)
    assert world.recover().ongoing == ("t-0",)
    assert list_throttles(world.cluster) == T0
    world.cluster.tick()
    assert world.recover().ongoing == ()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup
    assert len(world.store.runs()) == len(runs) + 1
    world.recover()
    assert len(world.store.runs()) == len(runs) + 1


def test_no_wait_keeps_rates_with_lists_of_others() -> None:
    world = MovingWorld()
    kept = create_topics(world, s=[[1, 2, 3]], t=[[1, 2, 3]])
    set_configs(world, "TOPIC/t", {LEADERS: "*", FOLLOWERS: "*"})
    world.hold_moves()
    wanted = reassignment(("s-0", [2, 1, 3]), ("t-0", [1, 2, 4]), throttle=1000)
    run = world.apply(*kept, wanted, wait=False)
    assert find_result(run, "throttle.clear").status is Status.STARTED
    assert list_throttles(world.cluster) == {
        "TOPIC/t": {LEADERS: "*", FOLLOWERS: "*"},
        **build_rates(1000, 1, 2, 3, 4),
    }


def test_no_wait_removes_throttle_of_immediate_move() -> None:
    world, kept = make_world()
    run = world.apply(*kept, throttled_reassignment(), wait=False)
    assert list_replicas(world)[0] == (1, 2, 4)
    assert find_result(run, "throttle.clear").status is Status.DONE
    assert list_throttles(world.cluster) == {}


def test_throttle_is_removed_after_cancel_by_others() -> None:
    world, kept = make_world()
    run = run_and_cancel(world, kept)
    assert find_result(run, "partitions.reassign").error == "move-overridden"
    assert list_throttles(world.cluster) == {}


def test_throttle_stays_after_timeout_until_move_completes() -> None:
    world, kept = make_world()
    run = run_into_timeout(world, kept)
    assert find_result(run, "partitions.reassign").error == "move-timeout"
    assert find_result(run, "throttle.clear").status is Status.STARTED
    assert world.clock.monotonic() < 60  # and the cleanup does not wait for another hour
    assert list_throttles(world.cluster) == T0
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", [2, 3])
def test_timed_out_throttle_removal_leaves_no_empty_list(nth: int, after: bool) -> None:
    """SUBTRACT leaves an empty override, and a second request removes it."""
    world, kept = make_world()
    plan = world.plan(*kept, throttled_reassignment())
    world.cluster.faults.time_out(after_effect=after, nth=nth, method="alter_configs")
    assert world.run(plan).complete
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_topic_deleted_during_move_leaves_no_throttle() -> None:
    world, kept = make_world()
    world.hold_moves()
    call_at_poll(world, 2, lambda other: other.delete_topics({"t": None}))
    run = world.apply(*kept, throttled_reassignment())
    assert find_result(run, "partitions.reassign").status is Status.FAILED
    assert find_result(run, "throttle.clear").status is Status.DONE
    assert list_throttles(world.cluster) == {}
    world.recover()
    assert not world.pending_cleanup


# Several moves.


def make_two_groups(rate_of_b: int = 2000) -> list[DesiredResource]:
    return [
        reassignment(("t-0", [1, 2, 4]), name="a", throttle=1000),
        reassignment(("t-1", [1, 2, 5]), name="b", throttle=rate_of_b),
    ]


def test_two_throttle_groups_run_in_sequence() -> None:
    world, kept = make_world()
    world.slow_moves()
    seen = record_polls(world)
    assert world.apply(*kept, *make_two_groups()).complete
    assert list_replicas(world) == [(1, 2, 4), (1, 2, 5)]
    moving = [(set(look.in_flight), look.throttles) for look in seen if look.in_flight]
    b = {"TOPIC/t": {LEADERS: "1:1,1:2,1:3", FOLLOWERS: "1:5"}, **build_rates(2000, 1, 2, 3, 5)}
    assert [set_ for set_, _ in moving] == sorted((set_ for set_, _ in moving), key=lambda s: min(s))
    assert all(found == (T0 if flying_ == {"t-0"} else b) for flying_, found in moving)
    assert {frozenset(flying_) for flying_, _ in moving} == {frozenset({"t-0"}), frozenset({"t-1"})}
    assert list_throttles(world.cluster) == {}


@pytest.mark.parametrize("how", [{"wait": False}, {"move_timeout_s": 30}])
def test_second_throttle_group_is_skipped_while_first_moves(how: dict[str, Any]) -> None:
    world, kept = make_world()
    world.hold_moves()
    run = world.apply(*kept, *make_two_groups(), **how)
    assert list_moves_in_flight(world.cluster) == {"t-0"}
    assert list_throttles(world.cluster) == T0
    skipped = [id_ for id_, r in run.results.items() if r.status is Status.SKIPPED]
    assert sorted(skipped) == [
        "partitions.reassign:Reassignment/b",
        "throttle.clear:Reassignment/b",
        "throttle.set:Reassignment/b",
    ]
    world.finish_moves()
    world.cluster.tick_on_poll = True
    assert world.apply(*kept, *make_two_groups()).complete
    assert list_replicas(world) == [(1, 2, 4), (1, 2, 5)]
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


@pytest.mark.parametrize("rate_of_b", [1000, 2000])
def test_second_throttle_group_runs_when_first_removal_fails(rate_of_b: int) -> None:
    """Settings that the run itself left on the brokers of both moves are not changes by another client."""
    world, kept = make_world()
    world.slow_moves()
    plan = world.plan(*kept, *make_two_groups(rate_of_b))
    requests = FaultyOperations()
    first = "Reassignment/a"
    requests.faults.fail(Fault("REFUSED", "No."), method=ClearThrottle.name, item=first)
    with requests.intercept([OPERATION_TYPES[ClearThrottle.name]]):
        run = world.run(plan)
    bad = [id_ for id_, r in run.results.items() if not r.is_good]
    assert bad == [f"throttle.clear:{first}"]
    assert list_replicas(world) == [(1, 2, 4), (1, 2, 5)]
    assert set(list_throttles(world.cluster)) == {"TOPIC/t", "BROKER/4"}, "what only the first group has set"
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_throttle_of_earlier_run_is_neither_set_nor_removed() -> None:
    world, kept = make_world()
    world.hold_moves()
    first, second = make_two_groups(rate_of_b=1000)
    world.apply(*kept, first, wait=False)
    world.cluster.calls.clear()
    run = world.apply(*kept, first, second, wait=False)
    (set_,) = (op for op in run.plan.operations if op.verb == "throttle.set")
    assert set(dump_args(set_)["entries"]) == {"BROKER/5", "TOPIC/t"}
    assert list_alterations(world) == ["BROKER/5", "TOPIC/t"]
    both = {
        "TOPIC/t": {LEADERS: "0:1,0:2,0:3,1:1,1:2,1:3", FOLLOWERS: "0:4,1:5"},
        **build_rates(1000, 1, 2, 3, 4, 5),
    }
    assert list_throttles(world.cluster) == both
    move_as_other_client(world, "t-1", None)  # the second has ended, the first has not
    world.recover()
    assert list_throttles(world.cluster) == T0
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_waiting_run_removes_only_its_own_throttle() -> None:
    world, kept = make_world()
    world.hold_moves()
    first, second = make_two_groups(rate_of_b=1000)
    world.apply(*kept, first, wait=False)
    world.cluster.move_ticks = 0
    assert world.apply(*kept, first, second).complete
    assert list_moves_in_flight(world.cluster) == {"t-0"}
    assert list_throttles(world.cluster) == T0


def test_raised_rate_stays_until_earlier_move_completes() -> None:
    world, kept = make_world()
    world.hold_moves()
    first, second = make_two_groups()
    world.apply(*kept, first, wait=False)
    world.cluster.move_ticks = 0
    run = world.apply(*kept, first, second, move_timeout_s=30)
    assert list_replicas(world)[1] == (1, 2, 5)
    assert list_moves_in_flight(world.cluster) == {"t-0"}
    assert find_result(run, "throttle.clear").status is Status.STARTED
    assert list_throttles(world.cluster) == {
        "TOPIC/t": {LEADERS: "0:1,0:2,0:3,1:1,1:2,1:3", FOLLOWERS: "0:4,1:5"},
        **build_rates(2000, 1, 2, 3, 5),
        **build_rates(1000, 4),
    }
    world.recover()
    assert list_throttles(world.cluster) == {**T0, **build_rates(2000, 1, 2, 3)}
    world.finish_moves()
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


# Brokers that are down.


def test_fenced_broker_gets_no_rate() -> None:
    world, kept = make_world()
    world.cluster.fence(4)
    world.hold_moves()
    world.apply(*kept, throttled_reassignment(), wait=False)
    assert list_throttles(world.cluster) == {"TOPIC/t": T0["TOPIC/t"], **build_rates(1000, 1, 2, 3)}
    world.cluster.fence(4, fenced=False)
    world.finish_moves()
    world.recover()
    assert list_replicas(world)[0] == (1, 2, 4)
    assert list_throttles(world.cluster) == {}


def test_rate_of_broker_fenced_during_move_is_removed_later() -> None:
    world, kept = make_world()
    world.slow_moves()
    call_at_poll(world, 3, lambda _: world.cluster.fence(3))
    run = world.apply(*kept, throttled_reassignment())
    clear = find_result(run, "throttle.clear")
    assert (clear.status, clear.error) == (Status.FAILED, "BROKER_NOT_AVAILABLE")
    assert "brokers that are down (3)" in clear.message
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert list_throttles(world.cluster) == build_rates(1000, 3)
    world.recover()
    assert list_throttles(world.cluster) == build_rates(1000, 3)
    assert dict(world.pending_cleanup.throttles) == build_rates(1000, 3)
    runs = world.store.runs()
    world.recover()
    assert world.store.runs() == runs  # there is nothing to try as long as it is down
    world.cluster.fence(3, fenced=False)
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


# Undoing.


def test_rollback_is_throttled_like_apply() -> None:
    world, kept = make_world()
    assert world.apply(*kept, *make_two_groups()).complete
    world.slow_moves()
    seen = record_polls(world)
    assert world.rollback().complete
    assert list_replicas(world) == [(1, 2, 3), (1, 2, 3)]
    by_partitions = {tuple(sorted(look.in_flight)): look.throttles for look in seen if look.in_flight}
    assert by_partitions == {
        ("t-0",): {"TOPIC/t": {LEADERS: "0:1,0:2,0:4", FOLLOWERS: "0:3"}, **build_rates(1000, 1, 2, 3, 4)},
        ("t-1",): {"TOPIC/t": {LEADERS: "1:1,1:2,1:5", FOLLOWERS: "1:3"}, **build_rates(2000, 1, 2, 3, 5)},
    }
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_declared_throttled_list_is_not_foreign() -> None:
    """Parts that a manifest declares stay, whatever moves begin and end."""
    world = MovingWorld(MemoryCluster(RACKS))
    parts = {LEADERS: {"append": ["1:1"]}}
    world.apply(assigned_topic("t", [1, 2, 3], [1, 2, 3], configs=parts))
    kept = topic("t", configs=parts)
    assert world.apply(kept, throttled_reassignment()).complete
    assert list_throttles(world.cluster) == {"TOPIC/t": {LEADERS: "1:1"}}
    assert not world.plan(kept, throttled_reassignment()).has_changes


def test_drain_is_throttled() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]], u=[[4, 5, 2]])
    wanted = desired("Reassignment", "drain", topics=["/.*/"], drain=[3], throttle=1000)
    world.slow_moves()
    seen = record_polls(world)
    assert world.apply(*kept, wanted).complete
    assert 3 not in list_replicas(world)[0]
    moving = [look.throttles for look in seen if look.in_flight]
    assert moving
    assert all(set(found) >= {"TOPIC/t", "BROKER/1", "BROKER/2", "BROKER/3"} for found in moving)
    assert all("TOPIC/u" not in found for found in moving)
    assert list_throttles(world.cluster) == {}


# Rates that others rely on.


def leave_own_rates(world: MovingWorld, kept: list[DesiredResource]) -> None:
    """An earlier move continues with exactly this rate."""
    world.hold_moves()
    world.apply(*kept, reassignment(("t-1", [1, 2, 4]), name="earlier", throttle=1000), wait=False)


def set_equal_foreign_rates(world: MovingWorld, kept: list[DesiredResource]) -> None:
    """Another client has set it."""
    for entity, values in build_rates(1000, 1, 2, 3, 4).items():
        set_configs(world, entity, values)


def set_other_foreign_rates(world: MovingWorld, kept: list[DesiredResource]) -> None:
    """Another client has set a different one."""
    for entity, values in build_rates(500, 1, 2, 3, 4).items():
        set_configs(world, entity, values)


RATES_THERE = [leave_own_rates, set_equal_foreign_rates, set_other_foreign_rates]


def remove_rates(world: MovingWorld) -> None:
    """Their moves have ended, whatever they were."""
    world.finish_moves()
    world.recover()
    for broker in RACKS:
        world.cluster.set_overrides(ConfigResource(ConfigScope.BROKER, str(broker)), {})
    assert list_throttles(world.cluster) == {}


@pytest.mark.parametrize("rates_there", RATES_THERE)
def test_saved_plan_relying_on_removed_rate_is_stale(
    rates_there: Callable[[MovingWorld, list[DesiredResource]], None],
) -> None:
    world, kept = make_world()
    rates_there(world, kept)
    plan = parse_plan(render_plan_file(world.plan(*kept, throttled_reassignment()), None)[0], "it.plan")
    remove_rates(world)
    with pytest.raises(KdeclareError) as caught:
        world.run(plan)
    assert caught.value.exit_code is ExitCode.STALE
    assert {(d.subject or "").split()[0] for d in caught.value.diagnostics} == {
        f"BROKER/{n}" for n in (1, 2, 3, 4)
    }
    assert list_replicas(world)[0] == (1, 2, 3)
    assert list_throttles(world.cluster) == {}


@pytest.mark.parametrize("rates_there", RATES_THERE)
def test_apply_from_manifests_sets_removed_rate(
    rates_there: Callable[[MovingWorld, list[DesiredResource]], None],
) -> None:
    world, kept = make_world()
    rates_there(world, kept)
    remove_rates(world)
    world.cluster.tick_on_poll = True
    world.slow_moves()
    seen = record_polls(world)
    assert world.apply(*kept, throttled_reassignment()).complete
    moving = [look.throttles for look in seen if look.in_flight]
    assert len(moving) >= 4
    assert all(found == T0 for found in moving)
    assert list_throttles(world.cluster) == {}


@pytest.mark.parametrize("broker", [1, 5])
def test_second_throttle_group_is_stale_after_rate_of_others(broker: int) -> None:
    """Broker 1 is in both groups, broker 5 only in the second one."""
    world, kept = make_world()
    world.slow_moves()
    theirs = build_rates(77, broker)[f"BROKER/{broker}"]
    call_at_poll(world, 2, lambda _: set_configs(world, f"BROKER/{broker}", theirs))
    run = world.apply(*kept, *make_two_groups())
    assert find_result(run, "throttle.set:Reassignment/b").status is Status.STALE
    assert find_result(run, "partitions.reassign:Reassignment/b").status is Status.SKIPPED
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert list_replicas(world) == [(1, 2, 4), (1, 2, 3)]
    assert list_throttles(world.cluster) == {f"BROKER/{broker}": theirs}


def test_equal_rate_of_others_is_reported() -> None:
    """It may be removed after their move, in the middle of ours."""
    world, kept = make_world()
    set_equal_foreign_rates(world, kept)
    plan = world.plan(*kept, throttled_reassignment())
    (diagnostic,) = plan.diagnostics
    assert (diagnostic.code, diagnostic.subject) == ("foreign-throttle", "1, 2, 3, 4")
    assert world.run(plan).complete
    assert list_throttles(world.cluster) == build_rates(1000, 1, 2, 3, 4)


def test_cluster_wide_rate_is_kept_and_reported() -> None:
    world, kept = make_world()
    everywhere = {"BROKER/": {LEADER_RATE: "10", FOLLOWER_RATE: "10"}}
    set_configs(world, "BROKER/", everywhere["BROKER/"])
    world.slow_moves()
    plan = world.plan(*kept, throttled_reassignment())
    (diagnostic,) = plan.diagnostics
    assert diagnostic.code == "foreign-throttle"
    assert "10 bytes per second" in diagnostic.detail
    seen = record_polls(world)
    assert world.run(plan).complete
    moving = [look.throttles for look in seen if look.in_flight]
    assert len(moving) >= 4
    assert all(found == {"TOPIC/t": T0["TOPIC/t"], **everywhere} for found in moving)
    assert list_throttles(world.cluster) == everywhere


def crash_before_effect() -> tuple[MovingWorld, list[DesiredResource]]:
    """The request for the throttle was sent, but shows no effect yet."""
    world, kept = make_world()
    world.cluster.faults.crash(after_effect=False, method="alter_configs")
    with pytest.raises(Crash):
        world.apply(*kept, throttled_reassignment())
    world.cluster.faults.clear()
    return world, kept


def apply_late_effect(world: MovingWorld) -> None:
    """The request of a process that has died."""
    for entity, values in T0.items():
        set_configs(world, entity, values)


def test_throttle_effective_after_crash_recovery_is_removed() -> None:
    world, kept = crash_before_effect()
    with world.store.lock("test"):
        recover_runs(
            world.store, connections_to(world.cluster), world.clock
        )  # as status does, which removes nothing
    assert set(world.pending_cleanup.throttles) == set(T0)
    apply_late_effect(world)
    assert world.apply(*kept, throttled_reassignment()).complete
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_throttle_effective_after_cleanup_check_is_removed() -> None:
    world, kept = crash_before_effect()
    world.recover()
    apply_late_effect(world)
    assert world.apply(*kept, throttled_reassignment()).complete
    world.recover()
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


RATES_DECLARED = {LEADER_RATE: "777", FOLLOWER_RATE: "777"}


@pytest.mark.parametrize("first", [False, True], ids=["with the move", "before it"])
@pytest.mark.parametrize(
    ("declared", "stays"),
    [
        ([topic("t"), desired("BrokerConfig", "3", configs=RATES_DECLARED)], {"BROKER/3": RATES_DECLARED}),
        ([topic("t", configs={LEADERS: ["0:1"]})], {"TOPIC/t": {LEADERS: "0:1"}}),
        ([topic("t", configs={LEADERS: {"append": ["0:1"]}})], {"TOPIC/t": {LEADERS: "0:1"}}),
    ],
    ids=["rates", "list", "part of a list"],
)
def test_declared_throttle_configs_stay_during_throttled_move(
    declared: list[DesiredResource], stays: Throttles, first: bool
) -> None:
    world, _ = make_world()
    if first:
        assert world.apply(*declared).complete
    world.slow_moves()
    assert world.apply(*declared, throttled_reassignment()).complete
    assert list_replicas(world)[0] == (1, 2, 4)
    assert list_throttles(world.cluster) == stays
    assert not world.pending_cleanup
    plan = world.plan(*declared, throttled_reassignment())
    assert (plan.changes, plan.operations) == ((), ())
