"""Brokers that do not show an earlier run's changes yet: a run waits for its project's changes only."""

import pytest

from kdeclare.core.plans.run import Status
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.cleanup import run_cleanup
from kdeclare.engine.executor import propagation
from kdeclare.engine.executor.propagation import await_visibility
from kdeclare.engine.executor.recovery import recover_runs
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import Crash, MemoryCluster
from tests.connections import connections_to
from tests.engine.moving import (
    FOLLOWERS,
    LEADERS,
    MovingWorld,
    build_rates,
    create_topics,
    find_result,
    list_codes,
    list_replicas,
    list_throttles,
    list_verbs,
    reassignment,
    record_polls,
)
from tests.engine.world import World, desired, topic


def kill_during_throttled_move() -> tuple[MovingWorld, list[DesiredResource]]:
    """Two batches under a throttle; the process dies during the first one, which then ends."""
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3], [1, 2, 3]])
    wanted = reassignment(("t-0", [1, 2, 4]), ("t-1", [1, 2, 5]), throttle=1000, batchSize=1)
    world.slow_moves()
    world.cluster.faults.crash(after_effect=True, method="reassign")
    with pytest.raises(Crash):
        world.apply(*kept, wanted)
    world.cluster.faults.clear()
    world.store.restart()
    world.finish_moves()
    return world, [*kept, wanted]


def test_apply_after_kill_sets_throttle_again_while_configs_lag() -> None:
    world, declared = kill_during_throttled_move()
    world.cluster.stale_configs = 30
    world.recover()
    plan = world.plan(*declared)
    assert list_codes(plan) == []
    assert list_verbs(plan) == ["throttle.set", "partitions.reassign", "throttle.clear"]
    seen = record_polls(world)
    assert world.run(plan).complete
    moving = [look.throttles for look in seen if look.in_flight]
    assert len(moving) >= 4
    expected = {"TOPIC/t": {LEADERS: "1:1,1:2,1:3", FOLLOWERS: "1:5"}, **build_rates(1000, 1, 2, 3, 5)}
    assert all(found == expected for found in moving), moving
    assert list_throttles(world.cluster) == {}
    assert list_replicas(world) == [(1, 2, 4), (1, 2, 5)]


def test_move_starts_only_when_brokers_show_the_throttle() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2, 3]])
    world.slow_moves()
    world.cluster.stale_configs = 10**6  # brokers never catch up
    run = world.apply(*kept, reassignment(("t-0", [1, 2, 4]), throttle=1000))
    throttle = find_result(run, "throttle.set")
    assert throttle.status is Status.FAILED
    assert throttle.error == "not-everywhere"
    assert "BROKER/1 does not show leader.replication.throttled.rate = 1000 yet" in throttle.message
    assert find_result(run, "partitions.reassign").status is Status.SKIPPED
    assert list_replicas(world) == [(1, 2, 3)]


def make_world_with_lagging_clear() -> MovingWorld:
    world, _ = kill_during_throttled_move()
    world.cluster.stale_configs = 10**6
    with world.store.lock("test"):
        recover_runs(world.store, connections_to(world.cluster), world.clock)
        run_cleanup(world._make_applier(), "test", "default", "memory")
    return world


def test_await_visibility_gives_up_after_limit() -> None:
    world = make_world_with_lagging_clear()
    before = world.clock.monotonic()
    progress: list[tuple[str, int, int]] = []
    connections = connections_to(world.cluster)
    await_visibility(world.store, connections, world.clock, lambda *how_far: progress.append(how_far))
    assert 115 < world.clock.monotonic() - before < 125
    assert progress[0] == ("Waiting for systems to show the changes of earlier runs", 0, 1)
    assert await_visibility(world.store, connections_to(world.cluster), world.clock) == ()


def test_await_visibility_without_waiting_names_pending_writes() -> None:
    world = make_world_with_lagging_clear()
    before = world.clock.monotonic()
    (pending,) = await_visibility(world.store, connections_to(world.cluster), world.clock, wait=False)
    assert pending.operation.verb == "throttle.clear"
    assert world.clock.monotonic() - before < 1


@pytest.mark.parametrize("caught_up", [True, False])
def test_await_visibility_waits_for_undone_write_while_brokers_lag(
    caught_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"retention.ms": "5"}))
    resource = ConfigResource(ConfigScope.TOPIC, "t")
    world.cluster.set_overrides(resource, {})
    monkeypatch.setattr(MemoryCluster, "is_caught_up", lambda _: caught_up)
    before = world.clock.monotonic()
    assert await_visibility(world.store, connections_to(world.cluster), world.clock) == ()
    assert (world.clock.monotonic() - before > 100) is not caught_up


def test_await_visibility_ignores_rolled_back_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryCluster, "is_caught_up", lambda _: False)
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1), topic("u", partitions=1, replicationFactor=1))
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"retention.ms": "5"}))
    world.rollback()
    world.rollback(world.store.runs()[0])
    before = world.clock.monotonic()
    assert await_visibility(world.store, connections_to(world.cluster), world.clock) == ()
    assert world.clock.monotonic() - before < 1


def test_await_visibility_ignores_topic_recreated_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryCluster, "is_caught_up", lambda _: False)
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.apply(topic("t", partitions=2, replicationFactor=1))
    world.cluster.elsewhere().delete_topics({"t": None})
    world.cluster.elsewhere().create_topics([NewTopic("t", 1, 1, None, {})])
    before = world.clock.monotonic()
    assert await_visibility(world.store, connections_to(world.cluster), world.clock) == ()
    assert world.clock.monotonic() - before < 1


@pytest.mark.parametrize("caught_up", [True, False])
def test_await_visibility_reads_run_plan_only_while_brokers_lag(
    caught_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    monkeypatch.setattr(MemoryCluster, "is_caught_up", lambda _: caught_up)
    read: list[str] = []
    monkeypatch.setattr(propagation, "read_run_plan", lambda store, run: read.append(run))
    assert await_visibility(world.store, connections_to(world.cluster), world.clock) == ()
    assert bool(read) is not caught_up


def test_await_visibility_checks_broker_configs_after_catch_up() -> None:
    world = World()
    world.apply(desired("BrokerConfig", "1", configs={"log.cleaner.threads": "2"}))
    world.cluster.stale_configs = 10**6
    world.apply(desired("BrokerConfig", "1", configs={"log.cleaner.threads": "3"}))
    (pending,) = await_visibility(world.store, connections_to(world.cluster), world.clock, wait=False)
    assert str(pending.operation.resource) == "BrokerConfig/1"
