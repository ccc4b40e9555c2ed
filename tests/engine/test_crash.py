"""Killing a run everywhere: at each journal position, and at each request before and after its effect."""

import threading
from collections.abc import Iterator
from typing import Literal

import pytest

from kdeclare.cluster import memory
from kdeclare.cluster.memory import MemoryCluster
from kdeclare.kinds.base import Desired
from kdeclare.state.memory import Crash as StoreCrash
from kdeclare.state.memory import MemoryStore
from tests.engine.world import World, desired, topic

When = Literal["before", "after"]


class Killed(BaseException):
    """The process dies."""


def _before() -> list[Desired]:
    return [
        topic("grow", partitions=2, replicationFactor=2, configs={"min.insync.replicas": "1"}),
        topic("shrink", partitions=2, replicationFactor=3, configs={"min.insync.replicas": "2"}),
        topic("lists", partitions=1, replicationFactor=1, configs={"cleanup.policy": ["delete"]}),
        topic("edit", partitions=1, replicationFactor=1, configs={"retention.ms": "1", "flush.ms": "9"}),
        topic("gone", partitions=1, replicationFactor=1),
    ]


def _after() -> list[Desired]:
    """Wants a dozen operations and more, many of them needing others."""
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


def _world() -> World:
    world = World(MemoryCluster(move_ticks=2))
    world.apply(*_before())
    return world


def _end_state() -> tuple[object, object]:
    world = _world()
    result = world.apply(*_after(), batch=1)
    assert result.complete
    assert len(result.results) >= 12
    return _state(world)


def _state(world: World) -> tuple[object, object]:
    """All that was asked for. On which broker Kafka puts a new partition is its own affair."""
    dump = world.cluster.dump()
    assert not world.cluster.moves()
    topics = world.cluster.topics()
    shapes = {name: [len(p.replicas) for p in topic.partitions] for name, topic in topics.items()}
    return {"configs": dump["configs"], "topics": shapes}, dict(world.owned())


END = _end_state()


def _survive(world: World) -> None:
    """What the next command does after the crash, and what must come of it."""
    for thread in threading.enumerate():
        if thread.name.startswith("apply"):
            thread.join()  # a request that was on its way arrives, and then the sender is no more
    world.store.restart()
    world.cluster.faults.clear()
    world.cluster.calls.clear()
    result = world.apply(*_after(), batch=1)
    assert result.complete, result.results
    assert not world.plan(*_after()).has_changes
    assert _state(world) == END


def _store_steps() -> int:
    world = _world()
    world.store.restart()
    world.apply(*_after(), batch=1)
    return len(world.store.steps)


def _requests() -> int:
    world = _world()
    world.cluster.calls.clear()
    world.apply(*_after(), batch=1)
    return len([c for c in world.cluster.calls if c.mutating])


def _store_positions() -> Iterator[tuple[int, When]]:
    for n in range(1, _store_steps() + 1):
        yield n, "before"
        yield n, "after"


@pytest.mark.parametrize(("n", "when"), list(_store_positions()))
def test_killed_at_a_position_of_the_journal(n: int, when: When) -> None:
    world = _world()
    world.store.restart()
    world.store.crash = StoreCrash(n, when, Killed())
    try:
        world.apply(*_after(), batch=1)
        # two operations can end in one line of the journal, so a run may have a few lines less
        assert n > len(world.store.steps) >= 30
    except Killed:
        pass
    _survive(world)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", range(1, _requests() + 1))
def test_killed_at_a_request(n: int, after: bool) -> None:
    world = _world()
    world.cluster.calls.clear()
    world.cluster.faults.crash(nth=n, after_effect=after)
    with pytest.raises(memory.Crash):
        world.apply(*_after(), batch=1)
    _survive(world)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", range(1, _requests() + 1))
def test_a_time_out_is_settled_by_observing_and_the_run_goes_on(n: int, after: bool) -> None:
    world = _world()
    world.cluster.calls.clear()
    world.cluster.faults.time_out(nth=n, after_effect=after)
    assert world.apply(*_after(), batch=1).complete
    assert _state(world) == END


def test_a_crash_while_recovering_is_recovered_from_as_well() -> None:
    for n in range(1, 4):
        for when in ("before", "after"):
            world = _world()
            world.cluster.calls.clear()
            world.cluster.faults.crash(nth=5, after_effect=True)
            with pytest.raises(memory.Crash):
                world.apply(*_after(), batch=1)
            world.cluster.faults.clear()
            world.store.restart()
            world.store.crash = StoreCrash(n, when, Killed())
            with pytest.raises(Killed):
                world.apply(*_after(), batch=1)
            _survive(world)


def test_an_unfinished_run_blocks_nothing() -> None:
    world = _world()
    assert isinstance(world.store, MemoryStore)
    world.cluster.calls.clear()
    world.cluster.faults.crash(nth=3, after_effect=True)
    with pytest.raises(memory.Crash):
        world.apply(*_after(), batch=1)
    world.cluster.faults.clear()
    world.store.restart()
    assert world.plan(*_after()).has_changes
