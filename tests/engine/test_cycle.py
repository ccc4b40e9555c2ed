"""Plan, apply, drift, plan again, roll back: the life of one project."""

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import Action, FieldOp, Reason, Risk
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.world import World, topic


def test_first_apply_creates_topic_and_next_plan_is_empty() -> None:
    world = World()
    orders = topic("orders", partitions=3, replicationFactor=3, configs={"retention.ms": "1000"})
    plan = world.plan(orders)
    assert [(c.action, c.reason) for c in plan.changes] == [(Action.CREATE, Reason.DECLARED)]
    assert plan.summary.create == 1
    assert world.run(plan).complete
    assert world.overrides("orders") == {"retention.ms": "1000"}
    assert not world.plan(orders).has_changes
    assert world.owned()["Topic/orders"]["configs"] == {"retention.ms": {"value": "1000"}}


def test_drift_is_reported_and_corrected() -> None:
    world = World()
    orders = topic("orders", partitions=1, replicationFactor=1, configs={"retention.ms": "1000"})
    world.apply(orders)
    world.set("orders", retention_ms="5")
    plan = world.plan(orders)
    (change,) = plan.changes
    assert change.reason is Reason.DRIFTED
    (field,) = change.fields
    assert (field.path, field.op, field.before, field.after) == (
        "configs.retention.ms",
        FieldOp.SET,
        "5",
        "1000",
    )
    world.run(plan)
    assert world.overrides("orders") == {"retention.ms": "1000"}


def test_undeclared_key_is_deleted_and_unmanaged_key_stays() -> None:
    world = World()
    world.apply(topic("orders", partitions=1, replicationFactor=1, configs={"retention.ms": "1000"}))
    world.set("orders", flush_ms="7")
    plan = world.plan(topic("orders", partitions=1, replicationFactor=1))
    assert [f.op for f in plan.changes[0].fields] == [FieldOp.DELETE]
    assert plan.unmanaged_configs == {"Topic/orders": ("flush.ms",)}
    assert plan.summary.unmanaged_configs == 1
    world.run(plan)
    assert world.overrides("orders") == {"flush.ms": "7"}


def test_rollback_unsets_key_and_second_rollback_sets_it() -> None:
    world = World()
    world.apply(topic("orders", partitions=1, replicationFactor=1))
    before = world.owned()
    world.apply(topic("orders", partitions=1, replicationFactor=1, configs={"retention.ms": "1000"}))
    assert world.rollback().complete
    assert world.overrides("orders") == {}
    assert world.owned() == before
    assert world.rollback().complete
    assert world.overrides("orders") == {"retention.ms": "1000"}


def test_rollback_of_creation_deletes_only_empty_topic() -> None:
    world = World()
    world.apply(topic("orders", partitions=1, replicationFactor=1))
    world.cluster.produce("orders", 3)
    plan = world.plan_rollback()
    assert [d.code for d in plan.diagnostics] == ["has-records"]
    assert not plan.operations
    assert world.owned()["Topic/orders"] is not None
    assert world.rollback(allow_data_loss=True).complete
    assert not world.cluster.topics(["orders"])
    assert world.owned() == {}


def test_plan_raises_factor_before_min_isr_and_after_partitions() -> None:
    world = World()
    world.apply(topic("t", partitions=2, replicationFactor=2, configs={"min.insync.replicas": "1"}))
    after = topic("t", partitions=4, replicationFactor=3, configs={"min.insync.replicas": "2"})
    plan = world.plan(after)
    verbs = [op.verb for op in plan.operations]
    assert verbs == ["partitions.increase", "partitions.reassign", "configs.alter"]
    assert plan.operations[2].needs
    assert plan.summary.reassign == 4
    assert world.run(plan).complete
    assert not world.plan(after).has_changes
    assert {len(p.replicas) for p in world.cluster.topics(["t"])["t"].partitions} == {3}


def test_plan_lowers_min_isr_before_factor() -> None:
    world = World()
    world.apply(topic("t", partitions=2, replicationFactor=3, configs={"min.insync.replicas": "2"}))
    after = topic("t", partitions=2, replicationFactor=2, configs={"min.insync.replicas": "1"})
    plan = world.plan(after)
    assert [op.verb for op in plan.operations] == ["configs.alter", "partitions.reassign"]
    assert world.run(plan).complete
    assert not world.plan(after).has_changes
    assert world.rollback().complete
    assert {len(p.replicas) for p in world.cluster.topics(["t"])["t"].partitions} == {3}
    assert world.overrides("t") == {"min.insync.replicas": "2"}


def test_orphan_is_deleted_only_when_deletes_are_allowed() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    plan = world.plan()
    assert not plan.has_changes
    assert [d.code for d in plan.diagnostics] == ["orphaned"]
    assert world.run(plan).complete
    assert "Topic/t" in world.owned()
    plan = world.plan(scope=PlanScope(allow_deletes=True))
    assert plan.summary.delete == 1
    world.run(plan)
    assert not world.cluster.topics(["t"])
    assert world.owned() == {}


def test_fewer_partitions_than_live_blocks_topic() -> None:
    world = World()
    world.apply(topic("t", partitions=3, replicationFactor=1))
    plan = world.plan(topic("t", partitions=2, replicationFactor=1))
    assert not plan.has_errors
    assert plan.summary.blocked == 1
    assert not plan.operations


def test_list_patch_keeps_elements_of_other_clients() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.set("t", leader_replication_throttled_replicas="0:1")
    part = {"leader.replication.throttled.replicas": {"append": ["0:2"]}}
    world.apply(topic("t", partitions=1, replicationFactor=1, configs=part))
    assert world.overrides("t") == {"leader.replication.throttled.replicas": "0:1,0:2"}
    world.apply(topic("t", partitions=1, replicationFactor=1))
    assert world.overrides("t") == {"leader.replication.throttled.replicas": "0:1"}


def test_append_and_subtract_of_one_key_are_two_ordered_operations() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"cleanup.policy": ["delete"]}))
    parts = {"cleanup.policy": {"append": ["compact"], "subtract": ["delete"]}}
    after = topic("t", partitions=1, replicationFactor=1, configs=parts)
    plan = world.plan(after)
    assert [f.op for f in plan.changes[0].fields] == [FieldOp.APPEND, FieldOp.SUBTRACT]
    assert len(plan.operations) == 2
    assert world.run(plan).complete
    assert world.overrides("t") == {"cleanup.policy": "compact"}
    assert not world.plan(after).has_changes
    assert world.rollback().complete
    assert world.overrides("t") == {"cleanup.policy": "delete"}


def test_rollback_cancels_move_in_flight() -> None:
    world = World(MemoryCluster({1: "a", 2: "b", 3: "c", 4: "d"}, move_ticks=1000))
    world.apply(topic("t", assignments={0: [1, 2, 3]}))
    result = world.apply(topic("t", assignments={0: [1, 2, 4]}), wait=False)
    assert [r.status for r in result.results.values()] == [Status.STARTED]
    assert world.cluster.moves()
    world.rollback()
    assert not world.cluster.moves()
    assert world.cluster.topics(["t"])["t"].partitions[0].replicas == (1, 2, 3)


def test_plan_is_stale_after_topic_is_recreated() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    plan = world.plan(topic("t", partitions=1, replicationFactor=1, configs={"retention.ms": "5"}))
    world.cluster.delete_topics({"t": None})
    world.cluster.create_topics([NewTopic("t", 1, 1, None, {})])
    with pytest.raises(KdeclareError) as stale:
        world.run(plan)
    assert stale.value.exit_code is ExitCode.STALE
    assert world.overrides("t") == {}


@pytest.mark.parametrize(
    ("before", "after", "risk"),
    [
        ({"retention.ms": "1000"}, {"retention.ms": "10"}, Risk.DESTRUCTIVE),
        ({"retention.ms": "-1"}, {"retention.ms": "10"}, Risk.DESTRUCTIVE),
        ({"retention.ms": "10"}, {"retention.ms": "1000"}, Risk.SAFE),
        ({}, {"retention.ms": "10"}, Risk.DESTRUCTIVE),
        ({}, {"retention.ms": "-1"}, Risk.SAFE),
        ({"cleanup.policy": ["compact"]}, {"cleanup.policy": ["compact", "delete"]}, Risk.DESTRUCTIVE),
        ({"cleanup.policy": ["compact", "delete"]}, {"cleanup.policy": ["compact"]}, Risk.SAFE),
    ],
)
def test_config_change_that_deletes_records_is_destructive(
    before: dict[str, object], after: dict[str, object], risk: Risk
) -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1, configs=before))
    plan = world.plan(topic("t", partitions=1, replicationFactor=1, configs=after))
    assert plan.changes[0].risk is risk
