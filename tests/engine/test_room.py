"""Moves that would fill a disk are denied before they begin."""

from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome
from tests.engine.world import World, desired, topic

GIB = 2**30


def make_world_with_records() -> World:
    """One topic of a gigabyte on brokers 1 and 2, and two empty brokers."""
    world = World(MemoryCluster({1: "a", 2: "b", 3: "a", 4: "b"}))
    world.apply(topic("t", assignments={0: [1, 2]}))
    world.cluster.produce("t", 1_000_000)  # a thousand bytes each
    return world


def reassignment(replicas: list[int], name: str = "move") -> DesiredResource:
    return desired("Reassignment", name, partitions=[{"topic": "t", "partition": 0, "replicas": replicas}])


def list_blocking_codes(world: World, *declared: DesiredResource, preflight: bool = True) -> list[str]:
    plan = world.plan(*declared, scope=PlanScope(complete=False, preflight=preflight))
    return [d.code for d in plan.diagnostics if d.is_blocking]


def test_move_beyond_disk_capacity_is_denied_and_names_broker() -> None:
    world = make_world_with_records()
    world.cluster.usable[3] = GIB // 2
    plan = world.plan(reassignment([3, 2]), scope=PlanScope(complete=False))
    (denial,) = [d for d in plan.diagnostics if d.is_blocking]
    assert (denial.code, plan_outcome(plan).exit_code) == ("no-room", 3)
    assert "0.9 GiB of additional disk space on broker 3, but the broker has only 0.5 GiB" in denial.detail
    assert not plan.operations


def test_sufficient_or_unknown_disk_capacity_is_allowed() -> None:
    world = make_world_with_records()
    assert list_blocking_codes(world, reassignment([3, 2])) == []
    world.cluster.usable.update({3: 2 * GIB, 1: 0})
    assert list_blocking_codes(world, reassignment([3, 2])) == []
    assert list_blocking_codes(world, reassignment([2, 1])) == []  # reordering copies nothing


def swap_reassignment() -> DesiredResource:
    """t moves from 1 to 3, and u from 3 to 1."""
    return desired(
        "Reassignment",
        "swap",
        partitions=[
            {"topic": "t", "partition": 0, "replicas": [3, 2]},
            {"topic": "u", "partition": 0, "replicas": [1, 4]},
        ],
    )


def test_disk_space_of_outgoing_replica_is_not_counted_as_free() -> None:
    world = make_world_with_records()
    world.apply(topic("u", assignments={0: [3, 4]}))
    world.cluster.produce("u", 1_000_000)
    world.cluster.usable[3] = GIB // 2
    assert list_blocking_codes(world, swap_reassignment()) == ["no-room"]


def test_batches_need_less_disk_capacity() -> None:
    world = World(MemoryCluster({1: "a", 2: "b"}))
    world.apply(topic("t", assignments={0: [1], 1: [1]}), topic("u", assignments={0: [2], 1: [2]}))
    world.cluster.produce("t", 2_000_000)
    world.cluster.produce("u", 2_000_000)
    parts = [("t", 0, 2), ("t", 1, 2), ("u", 0, 1), ("u", 1, 1)]
    wanted = [{"topic": t, "partition": p, "replicas": [b]} for t, p, b in parts]
    world.cluster.usable.update({1: 3 * GIB // 2, 2: 3 * GIB // 2})
    assert list_blocking_codes(world, desired("Reassignment", "swap", partitions=wanted)) == ["no-room"]
    assert list_blocking_codes(world, desired("Reassignment", "swap", partitions=wanted, batchSize=1)) == []


def test_rollback_beyond_disk_capacity_is_warned_of() -> None:
    world = make_world_with_records()
    world.apply(reassignment([3, 2]), scope=PlanScope(complete=False))
    world.cluster.usable[1] = 10
    plan = world.plan_rollback()
    assert "no-room" in [d.code for d in plan.diagnostics]
    assert world.run(plan).complete


def test_disk_capacity_is_not_checked_without_preflight() -> None:
    world = make_world_with_records()
    world.cluster.usable[3] = 0
    assert list_blocking_codes(world, reassignment([3, 2]), preflight=False) == []


def test_factor_increase_beyond_disk_capacity_is_denied() -> None:
    world = World(MemoryCluster({1: "a", 2: "b"}))
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.cluster.produce("t", 1_000_000)
    world.cluster.usable.update({1: 0, 2: 0})
    assert list_blocking_codes(world, topic("t", partitions=1, replicationFactor=2)) == ["no-room"]
