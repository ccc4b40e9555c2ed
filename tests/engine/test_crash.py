"""Kill a run everywhere: at each journal position, and before and after the effect of each request."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Literal

import pytest

from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.engine.state.memory_store import StoreCrash as StoreCrash
from kdeclare.providers.kafka import testing as memory
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.moving import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LEADERS,
    MovingWorld,
    Throttles,
    assigned_topic,
    create_topics,
    list_leaders,
    list_replicas,
    list_throttles,
    reassignment,
    set_configs,
)
from tests.engine.world import World, desired, topic

When = Literal["before", "after"]


class Killed(BaseException):
    """The process dies."""


def _make_initial() -> list[DesiredResource]:
    return [
        topic("grow", partitions=2, replicationFactor=2, configs={"min.insync.replicas": "1"}),
        topic("shrink", partitions=2, replicationFactor=3, configs={"min.insync.replicas": "2"}),
        topic("lists", partitions=1, replicationFactor=1, configs={"cleanup.policy": ["delete"]}),
        topic("edit", partitions=1, replicationFactor=1, configs={"retention.ms": "1", "flush.ms": "9"}),
        topic("gone", partitions=1, replicationFactor=1),
    ]


def _make_target() -> list[DesiredResource]:
    """Declare resources that need a dozen operations or more, many of them with dependencies."""
    parts = {"cleanup.policy": {"append": ["compact"], "subtract": ["delete"]}}
    return [
        topic("grow", partitions=4, replicationFactor=3, configs={"min.insync.replicas": "2"}),
        topic("shrink", partitions=2, replicationFactor=2, configs={"min.insync.replicas": "1"}),
        topic("lists", partitions=1, replicationFactor=1, configs=parts),
        topic("edit", partitions=3, replicationFactor=1, configs={"retention.ms": "2"}),
        *(topic(f"new-{n}", partitions=1, replicationFactor=1) for n in range(3)),
        desired("BrokerConfig", "cluster-default", configs={"log.cleaner.threads": "2"}),
        desired("BrokerConfig", "1", configs={"num.io.threads": "32"}),
    ]


def _make_world() -> World:
    world = World(MemoryCluster(move_ticks=2))
    world.apply(*_make_initial())
    return world


def _compute_end_state() -> tuple[object, object]:
    world = _make_world()
    result = world.apply(*_make_target(), batch=1)
    assert result.complete
    assert len(result.results) >= 12
    return _read_state(world)


def _read_state(world: World) -> tuple[object, object]:
    """Return the state that was declared. Kafka decides on which broker it puts a new partition."""
    dump = world.cluster.dump()
    assert not world.cluster.moves()
    topics = world.cluster.topics()
    shapes = {name: [len(p.replicas) for p in topic.partitions] for name, topic in topics.items()}
    # The next apply adds the id of a topic whose creation was not answered.
    owned = {
        id_: {k: v for k, v in record.items() if k != "topicId"} for id_, record in world.owned().items()
    }
    return {"configs": dump["configs"], "topics": shapes}, owned


END = _compute_end_state()


def _recover_and_check(world: World) -> None:
    """Run the next command after the crash, and check its result."""
    for thread in threading.enumerate():
        if thread.name.startswith("apply"):
            thread.join()  # a request that was in flight arrives, and then the sender is dead
    world.store.restart()
    world.cluster.faults.clear()
    world.cluster.calls.clear()
    result = world.apply(*_make_target(), batch=1)
    assert result.complete, result.results
    assert not world.plan(*_make_target()).has_changes
    assert _read_state(world) == END


def _count_store_steps() -> int:
    world = _make_world()
    world.store.restart()
    world.apply(*_make_target(), batch=1)
    return len(world.store.steps)


def _count_requests() -> int:
    world = _make_world()
    world.cluster.calls.clear()
    world.apply(*_make_target(), batch=1)
    return len([c for c in world.cluster.calls if c.is_mutating])


POSITIONS = 36
"""The maximum number of journal lines of one run; fixed, because all workers must collect the same tests."""


def _list_store_positions() -> Iterator[tuple[int, When]]:
    for n in range(1, POSITIONS + 1):
        yield n, "before"
        yield n, "after"


def test_journal_position_count_covers_all_steps() -> None:
    assert 30 <= _count_store_steps() <= POSITIONS


@pytest.mark.slow
@pytest.mark.parametrize(("n", "when"), list(_list_store_positions()))
def test_run_killed_at_journal_position_recovers(n: int, when: When) -> None:
    world = _make_world()
    world.store.restart()
    world.store.crash = StoreCrash(n, when, Killed())
    try:
        world.apply(*_make_target(), batch=1)
        # Two operations can end in one line of the journal, so a run may have a few lines less.
        assert n > len(world.store.steps) >= 30
    except Killed:
        pass
    _recover_and_check(world)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", range(1, _count_requests() + 1))
def test_run_killed_at_request_recovers(n: int, after: bool) -> None:
    world = _make_world()
    world.cluster.calls.clear()
    world.cluster.faults.crash(nth=n, after_effect=after)
    with pytest.raises(memory.Crash):
        world.apply(*_make_target(), batch=1)
    _recover_and_check(world)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", range(1, _count_requests() + 1))
def test_timed_out_request_is_settled_and_run_completes(n: int, after: bool) -> None:
    world = _make_world()
    world.cluster.calls.clear()
    world.cluster.faults.time_out(nth=n, after_effect=after)
    assert world.apply(*_make_target(), batch=1).complete
    assert _read_state(world) == END


def test_crash_during_recovery_recovers() -> None:
    for n in range(1, 4):
        for when in ("before", "after"):
            world = _make_world()
            world.cluster.calls.clear()
            world.cluster.faults.crash(nth=5, after_effect=True)
            with pytest.raises(memory.Crash):
                world.apply(*_make_target(), batch=1)
            world.cluster.faults.clear()
            world.store.restart()
            world.store.crash = StoreCrash(n, when, Killed())
            with pytest.raises(Killed):
                world.apply(*_make_target(), batch=1)
            _recover_and_check(world)


def test_unfinished_run_does_not_block_plan() -> None:
    world = _make_world()
    assert isinstance(world.store, MemoryStore)
    world.cluster.calls.clear()
    world.cluster.faults.crash(nth=3, after_effect=True)
    with pytest.raises(memory.Crash):
        world.apply(*_make_target(), batch=1)
    world.cluster.faults.clear()
    world.store.restart()
    assert world.plan(*_make_target()).has_changes


# Reassignments at a limited pace: a throttle, batches, an election, and pending cleanup.

OTHERS: Throttles = {
    "TOPIC/t": {LEADERS: "9:9"},
    "BROKER/1": {FOLLOWER_RATE: "77"},
    "BROKER/5": {LEADER_RATE: "88"},
}


def _make_moving_target() -> list[DesiredResource]:
    """Two batches under a throttle with an election, and a growing factor under another throttle."""
    return [
        topic("t"),
        topic("grow", partitions=1, replicationFactor=3, configs={"min.insync.replicas": "2"}),
        reassignment(("t-0", [4, 2, 1]), ("t-1", [5, 1, 2]), throttle=1000, batchSize=1),
    ]


def _make_moving_world() -> MovingWorld:
    world = MovingWorld(pace=Pace(throttle=2000))
    create_topics(world, t=[[1, 2, 3], [1, 2, 3]])
    world.apply(topic("t"), assigned_topic("grow", [1, 2], configs={"min.insync.replicas": "1"}))
    for entity, values in OTHERS.items():
        set_configs(world, entity, values)
    world.slow_moves(4)
    world.store.restart()
    world.cluster.calls.clear()
    return world


def _apply_moves(world: MovingWorld) -> ApplyResult:
    return world.apply(*_make_moving_target(), batch=1)


def _check_arrived(world: MovingWorld) -> None:
    """Check that all is as declared, that nothing temporary is left, and that others' settings are kept."""
    assert list_replicas(world, "t") == [(4, 2, 1), (5, 1, 2)]
    assert list_leaders(world, "t") == [4, 5]
    assert [len(r) for r in list_replicas(world, "grow")] == [3]
    assert world.overrides("grow") == {"min.insync.replicas": "2"}
    assert list_throttles(world.cluster) == OTHERS
    assert not world.pending_cleanup
    assert not world.plan(*_make_moving_target()).has_changes


def _recover_moves_and_check(world: MovingWorld, *, late: bool) -> None:
    """Recover after the crash: an immediate check, reassignments that end, and the same apply again.

    late: the reassignments have ended before the check.
    """
    for thread in threading.enumerate():
        if thread.name.startswith("apply"):
            thread.join()
    world.store.restart()
    world.cluster.faults.clear()
    if late:
        world.finish_moves()
    world.recover()
    world.finish_moves()
    assert _apply_moves(world).complete
    world.recover()
    _check_arrived(world)


def _count_moving_steps() -> int:
    world = _make_moving_world()
    assert _apply_moves(world).complete
    _check_arrived(world)
    return len(world.store.steps)


def _count_moving_requests() -> int:
    world = _make_moving_world()
    assert _apply_moves(world).complete
    return len(world.cluster.requests())


MOVING_POSITIONS = 26
"""The maximum number of journal lines of these reassignments; see `POSITIONS`."""


def _list_moving_positions() -> Iterator[tuple[int, When]]:
    for n in range(1, MOVING_POSITIONS + 1):
        yield n, "before"
        yield n, "after"


def test_moving_run_has_expected_operations() -> None:
    world = _make_moving_world()
    run = _apply_moves(world)
    done = [id_.partition(":")[0] for id_ in run.results]
    assert done.count("throttle.set") == done.count("throttle.clear") == 2
    assert done.count("partitions.reassign") == 3
    assert done.count("leaders.elect") == 1
    assert 20 <= _count_moving_steps() <= MOVING_POSITIONS
    assert _count_moving_requests() >= 10


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("n", "when"), list(_list_moving_positions()))
def test_moving_run_killed_at_journal_position_recovers(n: int, when: When, late: bool) -> None:
    world = _make_moving_world()
    world.store.crash = StoreCrash(n, when, Killed())
    try:
        _apply_moves(world)
        assert n > len(world.store.steps) >= 20
    except Killed:
        pass
    _recover_moves_and_check(world, late=late)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", range(1, _count_moving_requests() + 1))
def test_moving_run_killed_at_request_recovers(n: int, after: bool, late: bool) -> None:
    world = _make_moving_world()
    world.cluster.faults.crash(nth=n, after_effect=after)
    with pytest.raises(memory.Crash):
        _apply_moves(world)
    _recover_moves_and_check(world, late=late)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", range(1, _count_moving_requests() + 1))
def test_moving_run_with_timed_out_request_completes(n: int, after: bool) -> None:
    world = _make_moving_world()
    world.cluster.faults.time_out(nth=n, after_effect=after)
    assert _apply_moves(world).complete
    _check_arrived(world)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("second", range(1, 5))
@pytest.mark.parametrize("n", range(1, _count_moving_requests() + 1))
def test_moving_run_killed_twice_recovers(n: int, second: int, after: bool) -> None:
    """The command that recovers and cleans up dies as well, at its own n-th request or step."""
    world = _make_moving_world()
    world.cluster.faults.crash(nth=n, after_effect=True)
    with pytest.raises(memory.Crash):
        _apply_moves(world)
    world.store.restart()
    world.cluster.faults.clear()
    world.finish_moves()
    world.store.crash = StoreCrash(second, "after" if after else "before", Killed())
    with contextlib.suppress(Killed):
        world.recover()
    _recover_moves_and_check(world, late=True)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_moving_run_killed_during_cleanup_recovers(after: bool) -> None:
    for n in range(1, 6):
        world = _make_moving_world()
        world.hold_moves()
        _move_without_waiting = world.apply(*_make_moving_target(), batch=1, wait=False)
        assert not _move_without_waiting.complete
        world.finish_moves()
        world.cluster.calls.clear()
        world.cluster.faults.crash(nth=n, after_effect=after)
        with contextlib.suppress(memory.Crash):
            world.recover()
        world.cluster.tick_on_poll = True
        world.slow_moves(4)
        _recover_moves_and_check(world, late=False)
