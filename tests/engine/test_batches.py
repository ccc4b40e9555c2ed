"""Reassignments in batches: how many at a time, in which order, and what the rest of the plan waits for."""

import itertools
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.report.outcome import run_outcome
from tests.engine.moving import (
    MovingWorld,
    assigned_topic,
    call_at_poll,
    create_topics,
    find_result,
    find_results,
    list_leaders,
    list_moves_in_flight,
    list_replicas,
    list_throttles,
    list_verbs,
    move_as_other_client,
    reassignment,
    record_polls,
)
from tests.engine.world import topic

FAR = [1, 2, 4]


def make_world(count: int) -> tuple[MovingWorld, list[DesiredResource]]:
    world = MovingWorld()
    return world, create_topics(world, t=[[1, 2, 3]] * count)


def reassignment_to_four(count: int, **more: Any) -> DesiredResource:
    return reassignment(*((f"t-{n}", FAR) for n in range(count)), **more)


def list_turns(seen: list[frozenset[str]]) -> list[frozenset[str]]:
    """Return each set of partitions in flight once, without the pauses between them."""
    turns: list[frozenset[str]] = []
    for now in seen:
        if now and (not turns or turns[-1] != now):
            turns.append(now)
    return turns


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_batches_never_exceed_batch_size(size: int) -> None:
    world, kept = make_world(5)
    world.slow_moves(3)
    seen = record_polls(world)
    assert world.apply(*kept, reassignment_to_four(5, batchSize=size)).complete
    assert list_replicas(world) == [tuple(FAR)] * 5
    names = [f"t-{n}" for n in range(5)]
    expected = [frozenset(names[n : n + size]) for n in range(0, 5, size)]
    assert list_turns([look.in_flight for look in seen]) == expected


def test_project_batch_size_applies_across_topics_and_resources() -> None:
    world = MovingWorld(pace=Pace(batch_size=2))
    create_topics(world, a=[[1, 2]] * 3, b=[[2, 3]] * 2, c=[[1, 2, 3]] * 2)
    world.slow_moves(3)
    seen = record_polls(world)
    wanted = [
        topic("a", partitions=3, replicationFactor=3),
        topic("b", partitions=2, replicationFactor=3),
        topic("c"),
        reassignment(("c-0", FAR), ("c-1", FAR)),
    ]
    run = world.apply(*wanted)
    assert run.complete
    assert [len(r) for name in ("a", "b") for r in list_replicas(world, name)] == [3] * 5
    assert list_replicas(world, "c") == [tuple(FAR)] * 2
    turns = list_turns([look.in_flight for look in seen])
    assert max(map(len, turns)) == 2
    assert len(turns) == 4  # seven partitions
    assert frozenset().union(*turns) == {"a-0", "a-1", "a-2", "b-0", "b-1", "c-0", "c-1"}
    assert not world.plan(*wanted).has_changes


def test_batches_of_several_operations_share_one_barrier() -> None:
    """Between two batches of several operations, one barrier operation replaces all of the edges."""
    world = MovingWorld(pace=Pace(batch_size=3))
    names = [f"t{n}" for n in range(6)]
    create_topics(world, **{name: [[1, 2]] for name in names})
    world.slow_moves(3)
    plan = world.plan(*(topic(name, partitions=1, replicationFactor=3) for name in names))
    assert list_verbs(plan).count("moves.await") == 1
    seen = record_polls(world)
    assert world.run(plan).complete
    turns = list_turns([look.in_flight for look in seen])
    assert [len(turn) for turn in turns] == [3, 3]


def test_min_isr_is_raised_after_all_batches() -> None:
    world = MovingWorld(pace=Pace(batch_size=1))
    world.apply(assigned_topic("t", *[[1, 2]] * 3, configs={"min.insync.replicas": "1"}))
    world.slow_moves(3)
    wanted = topic("t", partitions=3, replicationFactor=3, configs={"min.insync.replicas": "2"})
    plan = world.plan(wanted)
    (raising,) = (op for op in plan.operations if op.verb == "configs.alter")
    parts = {op.id for op in plan.operations if op.verb == "partitions.reassign"}
    assert len(parts) == 3
    assert set(raising.needs) == parts
    sizes: list[tuple[str, list[int]]] = []

    def record_min_isr(_: object) -> None:
        sizes.append((world.overrides("t")["min.insync.replicas"], [len(r) for r in list_replicas(world)]))

    world.cluster.faults.run_before(record_min_isr, method="moves", nth=None)
    assert world.run(plan).complete
    assert world.overrides("t")["min.insync.replicas"] == "2"
    assert {value for value, _ in sizes} == {"1"}
    world.cluster.faults.clear()
    assert not world.plan(wanted).has_changes


def test_min_isr_is_not_raised_when_a_batch_fails() -> None:
    world = MovingWorld(pace=Pace(batch_size=1))
    world.apply(assigned_topic("t", *[[1, 2]] * 3, configs={"min.insync.replicas": "1"}))
    wanted = topic("t", partitions=3, replicationFactor=3, configs={"min.insync.replicas": "2"})
    plan = world.plan(wanted)
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-1")
    run = world.run(plan)
    assert [len(r) for r in list_replicas(world)] == [3, 2, 3]
    assert find_result(run, "configs.alter").status is Status.SKIPPED
    assert world.overrides("t")["min.insync.replicas"] == "1"
    assert world.apply(wanted).complete
    assert world.overrides("t")["min.insync.replicas"] == "2"


def test_inter_batch_pause_is_not_applied_before_first_batch() -> None:
    world, kept = make_world(3)
    world.slow_moves(3)
    sent: list[float] = []
    world.cluster.faults.run_before(
        lambda _: sent.append(world.clock.monotonic()), method="reassign", nth=None
    )
    seen = record_polls(world)
    plan = world.plan(*kept, reassignment_to_four(3, batchSize=1, interBatchPause="90s"))
    began = world.clock.monotonic()
    assert world.run(plan).complete
    assert len(sent) == 3
    assert sent[0] - began < 5
    for before, after in itertools.pairwise(sent):
        over = max(look.at for look in seen if before <= look.at < after and look.in_flight)
        assert 90 <= after - over < 105
    assert list_replicas(world) == [tuple(FAR)] * 3


def test_interrupt_ends_inter_batch_pause() -> None:
    world, kept = make_world(2)
    plan = world.plan(*kept, reassignment_to_four(2, batchSize=1, interBatchPause="1h", throttle=1000))
    sleep = world.clock.sleep

    def sleep_and_stop(seconds: float) -> None:
        sleep(seconds)
        if world.clock.monotonic() > 60:
            world.stop.set()

    world.clock.sleep = sleep_and_stop  # type: ignore[method-assign]
    run = world.run(plan)
    assert world.clock.monotonic() < 120
    assert [r.status for r in find_results(run, "partitions.reassign")] == [Status.DONE, Status.INTERRUPTED]
    assert list_replicas(world) == [tuple(FAR), (1, 2, 3)]
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


def test_failed_batch_does_not_stop_next_batch() -> None:
    world, kept = make_world(3)
    plan = world.plan(*kept, reassignment_to_four(3, batchSize=1, throttle=1000))
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-1")
    run = world.run(plan)
    assert [r.status for r in find_results(run, "partitions.reassign")] == [
        Status.DONE,
        Status.FAILED,
        Status.DONE,
    ]
    assert list_replicas(world) == [tuple(FAR), (1, 2, 3), tuple(FAR)]
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert list_throttles(world.cluster) == {}


def test_failed_batch_with_fail_fast_stops_next_batch() -> None:
    world, kept = make_world(3)
    plan = world.plan(*kept, reassignment_to_four(3, batchSize=1, throttle=1000))
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-1")
    run = world.run(plan, fail_fast=True)
    assert [r.status for r in find_results(run, "partitions.reassign")] == [
        Status.DONE,
        Status.FAILED,
        Status.INTERRUPTED,
    ]
    assert list_replicas(world) == [tuple(FAR), (1, 2, 3), (1, 2, 3)]
    assert list_throttles(world.cluster) == {}


def test_partly_failed_batch_completes_before_next_batch() -> None:
    """Kafka answers per partition: a refusal of one partition does not affect its neighbor."""
    world, kept = make_world(4)
    world.slow_moves(4)
    plan = world.plan(*kept, reassignment_to_four(4, batchSize=2))
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-0")
    seen = record_polls(world)
    world.run(plan)
    assert list_replicas(world) == [(1, 2, 3), tuple(FAR), tuple(FAR), tuple(FAR)]
    assert list_turns([look.in_flight for look in seen]) == [{"t-1"}, {"t-2", "t-3"}]


def test_timed_out_batch_skips_next_batches() -> None:
    world, kept = make_world(3)
    world.hold_moves()
    run = world.apply(*kept, reassignment_to_four(3, batchSize=1, timeout="40s", throttle=1000))
    first, second, third = find_results(run, "partitions.reassign")
    assert (first.status, first.error) == (Status.STARTED, "move-timeout")
    assert "t-0 waits for broker 4" in first.message
    assert "after 40 s" in first.message
    assert [r.status for r in (second, third)] == [Status.SKIPPED] * 2
    assert list_moves_in_flight(world.cluster) == {"t-0"}
    assert 40 <= world.clock.monotonic() < 60
    assert run_outcome(run).exit_code is ExitCode.PARTIAL


def test_timeout_applies_to_each_batch() -> None:
    world, kept = make_world(3)
    world.slow_moves(30)
    assert world.apply(*kept, reassignment_to_four(3, batchSize=1, timeout="40s")).complete
    assert world.clock.monotonic() > 60


def test_run_timeout_applies_when_manifest_has_none() -> None:
    world, kept = make_world(1)
    world.hold_moves()
    run = world.apply(*kept, reassignment_to_four(1), move_timeout_s=25)
    assert "after 25 s" in find_result(run, "partitions.reassign").message
    assert 25 <= world.clock.monotonic() < 40


def test_no_wait_starts_first_batch_and_next_apply_continues() -> None:
    world, kept = make_world(3)
    wanted = reassignment_to_four(3, batchSize=1, throttle=1000)
    world.hold_moves()
    run = world.apply(*kept, wanted, wait=False)
    assert [r.status for r in find_results(run, "partitions.reassign")] == [
        Status.STARTED,
        Status.SKIPPED,
        Status.SKIPPED,
    ]
    assert list_moves_in_flight(world.cluster) == {"t-0"}
    again = world.apply(*kept, wanted, wait=False)  # nothing else begins during this time
    assert list_moves_in_flight(world.cluster) == {"t-0"}
    assert [r.status for r in find_results(again, "moves.await")] == [Status.STARTED, Status.SKIPPED]
    world.finish_moves()
    world.apply(*kept, wanted, wait=False)
    assert list_moves_in_flight(world.cluster) == {"t-1"}
    world.finish_moves()
    world.cluster.tick_on_poll = True
    assert world.apply(*kept, wanted).complete
    assert list_replicas(world) == [tuple(FAR)] * 3
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup
    assert not world.plan(*kept, wanted).has_changes


def test_resumed_run_waits_for_moves_in_flight() -> None:
    world, kept = make_world(3)
    wanted = reassignment_to_four(3, batchSize=1)
    world.hold_moves()
    call_at_poll(world, 2, lambda _: world.stop.set())
    world.apply(*kept, wanted)
    assert list_moves_in_flight(world.cluster) == {"t-0"}
    world.clear_interrupt()
    world.cluster.faults.clear()
    world.cluster.tick(95)
    world.cluster.tick_on_poll = True
    world.cluster.move_ticks = 3
    plan = world.plan(*kept, wanted)
    first, _ = (op for op in plan.operations if op.verb == "moves.await")
    assert dump_arguments(first.args)["partitions"] == {"t-0": FAR}
    seen = record_polls(world)
    assert world.run(plan).complete
    assert list_turns([look.in_flight for look in seen]) == [{"t-0"}, {"t-1"}, {"t-2"}]


def test_resumed_run_respects_manifest_timeout() -> None:
    world, kept = make_world(2)
    wanted = reassignment_to_four(2, batchSize=1, timeout="40s")
    world.hold_moves()
    world.apply(*kept, wanted, wait=False)
    began = world.clock.monotonic()
    run = world.apply(*kept, wanted)
    assert find_result(run, "moves.await").error == "move-timeout"
    assert find_result(run, "partitions.reassign").status is Status.SKIPPED
    assert world.clock.monotonic() - began < 60


def test_batch_ignores_moves_of_another_client() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]], u=[[1, 2, 3]])
    world.hold_moves()
    move_as_other_client(world, "u-0", FAR)
    world.cluster.move_ticks = 0
    assert world.apply(*kept, reassignment(("t-0", FAR), batchSize=1)).complete
    assert list_moves_in_flight(world.cluster) == {"u-0"}


def test_leaders_are_elected_after_each_completed_batch() -> None:
    world, kept = make_world(3)
    wanted = reassignment(*((f"t-{n}", [4, 2, 1]) for n in range(3)), batchSize=1)
    world.hold_moves()
    world.apply(*kept, wanted, wait=False)
    assert list_leaders(world) == [1, 1, 1]
    world.finish_moves()
    world.recover()
    assert list_leaders(world) == [4, 1, 1]
    world.cluster.tick_on_poll = True
    world.cluster.move_ticks = 0
    assert world.apply(*kept, wanted).complete
    assert list_leaders(world) == [4, 4, 4]


def test_rollback_moves_in_batches() -> None:
    world, kept = make_world(4)
    assert world.apply(*kept, reassignment_to_four(4, batchSize=2, throttle=1000)).complete
    world.slow_moves(3)
    seen = record_polls(world)
    assert world.rollback().complete
    assert list_replicas(world) == [(1, 2, 3)] * 4
    assert [len(turn) for turn in list_turns([look.in_flight for look in seen])] == [2, 2]
    assert list_throttles(world.cluster) == {}


def test_timed_out_batch_of_several_operations_skips_the_rest() -> None:
    world = MovingWorld(pace=Pace(batch_size=2))
    names = [f"t{n}" for n in range(6)]
    create_topics(world, **{name: [[1, 2]] for name in names})
    world.hold_moves()
    run = world.apply(*(topic(n, partitions=1, replicationFactor=3) for n in names), move_timeout_s=30)
    statuses = [r.status for r in find_results(run, "partitions.reassign")]
    assert statuses == [Status.STARTED] * 2 + [Status.SKIPPED] * 4
    assert len(list_moves_in_flight(world.cluster)) == 2


def make_two_groups(**more: Any) -> list[DesiredResource]:
    """Two Reassignment resources of two partitions each."""
    a, b = (more.get(name, {}) for name in "ab")
    return [
        reassignment(("t-0", FAR), ("t-1", FAR), name="a", **a),
        reassignment(("t-2", FAR), ("t-3", FAR), name="b", **b),
    ]


TWO_GROUPS: list[tuple[int, Pace, dict[str, Any]]] = [
    (2, Pace(), {"a": {"batchSize": 2}, "b": {"batchSize": 2}}),
    (1, Pace(), {"a": {"batchSize": 1}, "b": {"batchSize": 1}}),
    (1, Pace(batch_size=1), {"a": {"timeout": "1h"}}),
    (1, Pace(batch_size=1), {"a": {"throttle": 1000}}),
    (2, Pace(batch_size=2), {"b": {"batchSize": 1}}),
]


@pytest.mark.parametrize(("size", "pace", "more"), TWO_GROUPS)
def test_groups_share_batch_size(size: int, pace: Pace, more: dict[str, Any]) -> None:
    world, kept = make_world(4)
    world.pace = pace
    world.slow_moves(3)
    seen = record_polls(world)
    assert world.apply(*kept, *make_two_groups(**more)).complete
    assert list_replicas(world) == [tuple(FAR)] * 4
    assert max(len(look.in_flight) for look in seen) == size


@pytest.mark.parametrize(("size", "pace", "more"), TWO_GROUPS)
def test_groups_share_batch_size_without_waiting(size: int, pace: Pace, more: dict[str, Any]) -> None:
    world, kept = make_world(4)
    world.pace = pace
    world.hold_moves()
    for _ in range(4):
        world.apply(*kept, *make_two_groups(**more), wait=False)
        assert len(list_moves_in_flight(world.cluster)) <= size
        world.finish_moves()
    assert list_replicas(world) == [tuple(FAR)] * 4
    world.recover()
    assert not world.plan(*kept, *make_two_groups(**more)).has_changes


def test_manifest_timeout_bounds_barrier_throttle_and_election() -> None:
    """If part of a batch is refused, the barrier, throttle and election still wait for the rest."""
    world, kept = make_world(4)
    wanted = reassignment(
        *((f"t-{n}", [4, 2, 1]) for n in range(4)), throttle=1000, batchSize=2, timeout="20s"
    )
    world.hold_moves()
    world.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "No."), method="reassign", item="t-0")
    run = world.apply(*kept, wanted)
    for verb in ("moves.await", "throttle.clear", "leaders.elect"):
        waited = find_result(run, verb)
        assert (waited.status, waited.error) == (Status.STARTED, "move-timeout")
        assert "after 20 s" in waited.message
    assert world.clock.monotonic() < 60
    assert list_moves_in_flight(world.cluster) == {"t-1"}


def test_no_wait_skips_inter_batch_pause() -> None:
    """Reordering replicas ends immediately, so the next batch waits only for its pause."""
    world, kept = make_world(2)
    wanted = reassignment(
        ("t-0", [2, 1, 3]), ("t-1", [2, 1, 3]), batchSize=1, interBatchPause="30m", throttle=1000
    )
    run = world.apply(*kept, wanted, wait=False)
    assert world.clock.monotonic() < 10
    assert find_results(run, "partitions.reassign")[1].status is Status.SKIPPED
    assert list_replicas(world) == [(2, 1, 3), (1, 2, 3)]
    world.apply(*kept, wanted, wait=False)
    assert world.clock.monotonic() < 10
    assert list_replicas(world) == [(2, 1, 3)] * 2
    world.recover()
    assert not world.plan(*kept, wanted).has_changes
