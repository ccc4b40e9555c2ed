"""A plan contains the racks of brokers if it places replicas, and only then."""

from tests.engine.moving import RACKS, MovingWorld
from tests.engine.world import desired, topic


def test_plan_with_assignments_includes_racks() -> None:
    world = MovingWorld()
    stated = world.plan(topic("stated", assignments={0: [1, 2, 3]}))
    assert stated.racks == RACKS
    world.apply(topic("orders", assignments={0: [1, 2, 3]}))
    drain = desired("Reassignment", "drain-1", topics=["orders"], drain=[1])
    assert world.plan(drain).racks == RACKS


def test_plan_without_assignments_has_no_racks() -> None:
    world = MovingWorld()
    assert world.plan(topic("orders", partitions=3)).racks == {}
    world.apply(topic("orders", partitions=3))
    assert world.plan(topic("orders", partitions=3, configs={"retention.ms": 1000})).racks == {}


def test_rollback_plan_includes_racks() -> None:
    world = MovingWorld()
    run = world.apply(topic("orders", assignments={0: [1, 2, 3]}))
    assert run.run_id is not None
    assert world.plan_rollback(run.run_id).racks == RACKS
