"""What a rollback must leave unchanged, and what it must restore."""

from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.run import Status
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.world import World, desired, topic


def list_rollback_codes(world: World) -> list[str]:
    """Return what the rollback of the last run reports as impossible."""
    return [d.code for d in world.plan_rollback().diagnostics]


def test_rollback_of_refused_creation_keeps_foreign_topic() -> None:
    world = World()
    plan = world.plan(topic("x", partitions=1, replicationFactor=1))
    world.cluster.faults.run_before(
        lambda other: other.create_topics([NewTopic("x", 2, 1, None, {})]) and None, method="create_topics"
    )
    result = world.run(plan)
    assert [r.status for r in result.results.values()] == [Status.STALE]
    assert not world.plan_rollback().operations


def test_rollback_of_topic_changed_since_is_conflict() -> None:
    world = World()
    world.apply(topic("x", partitions=1, replicationFactor=1))
    world.set("x", retention_ms="5")
    assert list_rollback_codes(world) == ["conflict"]
    assert not world.plan_rollback().operations


def test_rollback_of_refused_change_keeps_change_of_others() -> None:
    world = World()
    world.apply(topic("x", partitions=1, replicationFactor=1))
    world.cluster.faults.fail(Fault("INVALID_CONFIG", "no"), item="TOPIC/x")
    world.apply(topic("x", partitions=1, replicationFactor=1, configs={"retention.ms": "5"}))
    world.set("x", retention_ms="5")
    assert not world.plan_rollback().operations


def test_rollback_of_rolled_back_creation_creates_topic() -> None:
    world = World()
    world.apply(topic("x", partitions=3, replicationFactor=2, configs={"retention.ms": "5"}))
    owned = dict(world.owned())
    assert world.rollback().complete
    plan = world.plan_rollback()
    assert plan.summary.create == 1
    assert not plan.diagnostics
    assert world.run(plan).complete
    assert world.overrides("x") == {"retention.ms": "5"}
    assert len(world.cluster.topics(["x"])["x"].partitions) == 3
    created = world.cluster.topics(["x"])["x"].topic_id
    assert dict(world.owned()) == {"Topic/x": {**owned["Topic/x"], "topicId": created}}


def test_rollback_of_partial_adoption_releases_topic() -> None:
    world = World()
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {})])
    world.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", "no"), item="x")
    world.apply(topic("x", partitions=2, replicationFactor=1, configs={"retention.ms": "5"}))
    assert world.owned()
    world.rollback()
    assert world.overrides("x") == {}
    assert world.owned() == {}


def test_mixed_factors_are_raised_before_min_isr() -> None:
    world = World()
    world.cluster.create_topics([NewTopic("x", 2, 2, None, {})])
    grow = {TopicPartition("x", 0): (1, 2, 3)}
    world.cluster.reassign(grow, allow_replication_factor_change=True)
    after = topic("x", partitions=2, replicationFactor=3, configs={"min.insync.replicas": "3"})
    plan = world.plan(after)
    assert [op.verb for op in plan.operations] == ["partitions.reassign", "configs.alter"]


def test_min_isr_is_not_raised_before_factor_increase_completes() -> None:
    world = World(MemoryCluster(move_ticks=1000))
    world.apply(topic("x", partitions=1, replicationFactor=2))
    after = topic("x", partitions=1, replicationFactor=3, configs={"min.insync.replicas": "3"})
    result = world.apply(after, wait=False)
    assert sorted(r.status for r in result.results.values()) == [Status.SKIPPED, Status.STARTED]
    plan = world.plan(after)
    assert [(d.code, d.is_blocking) for d in plan.diagnostics] == [("move-in-flight", False)]
    wait, alter = plan.operations
    assert (wait.verb, alter.verb) == ("moves.await", "configs.alter")
    assert wait.id in alter.needs  # kdeclare's own move: operations that depend on its end wait for it.
    assert world.run(plan).complete
    assert world.overrides("x") == {"min.insync.replicas": "3"}
    assert not world.cluster.moves()


def test_assignments_and_reassignment_with_other_replicas_contradict() -> None:
    world = World()
    placed = topic("x", assignments={0: [1, 2]})
    world.apply(placed)
    move = {"topic": "x", "partition": 0, "replicas": [2, 3]}
    plan = world.plan(placed, desired("Reassignment", "r", partitions=[move]))
    assert [d.code for d in plan.diagnostics] == ["contradiction"]
    assert plan.has_errors


def test_reassignment_of_missing_partition_is_an_error() -> None:
    world = World()
    kept = topic("x", partitions=1, replicationFactor=2)
    world.apply(kept)
    move = {"topic": "x", "partition": 5, "replicas": [1, 2]}
    plan = world.plan(kept, desired("Reassignment", "r", partitions=[move]))
    assert plan.has_errors
