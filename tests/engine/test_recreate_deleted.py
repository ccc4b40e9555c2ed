"""A rollback with --recreate-deleted re-creates deleted topics without their records."""

from dataclasses import replace
from typing import Any

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import run_outcome
from tests.engine.world import World, topic

SPEC: dict[str, Any] = {
    "assignments": {0: [3, 1], 1: [1, 2]},
    "configs": {"retention.ms": "5000", "cleanup.policy": ["compact", "delete"]},
}


def make_world_with_deletion() -> World:
    """Return a world in which a run deleted topic x, which another client had changed and written to."""
    world = World()
    world.apply(topic("x", **SPEC))
    world.set("x", max_message_bytes="7000", leader_replication_throttled_replicas="*")
    world.cluster.produce("x", 7)
    assert world.run(plan_deletion(world)).complete
    return world


def plan_deletion(world: World) -> Plan:
    return world.plan(scope=PlanScope(allow_deletes=True))


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def list_replicas(world: World) -> list[tuple[int, ...]]:
    return [partition.replicas for partition in world.cluster.topics()["x"].partitions]


def test_rollback_without_option_keeps_topic_deleted_and_names_option() -> None:
    world = make_world_with_deletion()
    plan = world.plan_rollback()
    (lost,) = plan.diagnostics
    assert not plan.operations
    assert lost.code == "irreversible"
    assert "--recreate-deleted" in lost.hint


def test_rollback_creates_empty_topic_with_earlier_replicas_and_configs() -> None:
    world = make_world_with_deletion()
    plan = world.plan_rollback(recreates_deleted=True)
    (warned,) = plan.diagnostics
    assert warned.code == "recreated-empty"
    assert "The records and the committed offsets of the topic cannot be restored" in warned.detail
    run = world.run(plan)
    assert run_outcome(run).exit_code is ExitCode.OK
    assert list_replicas(world) == [(3, 1), (1, 2)]
    assert world.overrides("x") == {
        "retention.ms": "5000",
        "cleanup.policy": "compact,delete",
        "max.message.bytes": "7000",
    }
    assert not world.cluster.record_counts(["x"]).get("x")


def test_recreated_topic_is_owned_with_its_new_id() -> None:
    world = make_world_with_deletion()
    world.rollback(recreates_deleted=True)
    owned = world.owned()["Topic/x"]
    assert owned["topicId"] == world.cluster.topics()["x"].topic_id
    assert owned["configs"].keys() == {"retention.ms", "cleanup.policy"}
    assert not world.plan(topic("x", **SPEC)).changes


def test_rollback_of_recreation_deletes_empty_topic() -> None:
    world = make_world_with_deletion()
    world.rollback(recreates_deleted=True)
    assert world.rollback().complete
    assert not world.cluster.topics()
    assert not world.owned()


def test_replicas_during_a_move_are_the_target_replicas() -> None:
    world = World()
    world.apply(topic("x", partitions=1, replicationFactor=1))
    world.cluster.reassign({TopicPartition("x", 0): (2,)}, allow_replication_factor_change=False)
    (op,) = plan_deletion(world).operations
    assert isinstance(op.args, DeleteTopicArgs)
    assert op.args.before is not None
    assert op.args.before.assignments == {0: (2,)}


def test_kafka_places_replicas_if_broker_is_gone() -> None:
    world = make_world_with_deletion()
    world.cluster.unregister_broker(3)
    plan = world.plan_rollback(recreates_deleted=True)
    assert (
        "Broker 3 is not in the cluster anymore, so Kafka places the replicas" in plan.diagnostics[0].detail
    )
    assert world.run(plan).complete
    assert [len(replicas) for replicas in list_replicas(world)] == [2, 2]


def test_topic_that_exists_again_is_left_unchanged() -> None:
    world = make_world_with_deletion()
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {})])
    plan = world.plan_rollback(recreates_deleted=True)
    assert not plan.operations
    assert list_codes(plan) == ["irreversible"]
    assert "A topic with the same name exists again" in plan.diagnostics[0].detail


def test_run_of_earlier_version_says_that_settings_were_not_recorded() -> None:
    world = World()
    world.apply(topic("x", **SPEC))
    plan = plan_deletion(world)
    world.run(replace(plan, operations=tuple(map(without_record, plan.operations))))
    back = world.plan_rollback(recreates_deleted=True)
    assert not back.operations
    assert "does not contain the replicas and configs of the topic" in back.diagnostics[0].detail


def without_record(op: Operation) -> Operation:
    assert isinstance(op.args, DeleteTopicArgs)
    return replace(op, args=replace(op.args, before=None))


def test_other_changes_of_run_are_restored_too() -> None:
    world = World()
    world.apply(topic("x", **SPEC), topic("y", partitions=1, replicationFactor=1))
    changed = topic("y", partitions=1, replicationFactor=1, configs={"retention.ms": "5"})
    world.run(world.plan(changed, scope=PlanScope(allow_deletes=True)))
    assert world.rollback(recreates_deleted=True).complete
    assert world.overrides("y") == {}
    assert world.owned().keys() == {"Topic/x", "Topic/y"}


def test_saved_plan_of_recreation_can_be_applied() -> None:
    world = make_world_with_deletion()
    text, _ = render_plan_file(world.plan_rollback(recreates_deleted=True))
    plan = parse_plan(text, "undo.plan")
    assert world.run(plan).complete
    assert list_replicas(world) == [(3, 1), (1, 2)]


def test_plan_that_would_recreate_another_topic_is_not_confined() -> None:
    world = World(MemoryCluster())
    world.apply(topic("x", **SPEC))
    (op,) = plan_deletion(world).operations
    assert isinstance(op.args, DeleteTopicArgs)
    assert op.args.before is not None
    forged = replace(op, args=replace(op.args, before=replace(op.args.before, topic="y")))
    assert get_operation_type(op).is_confined(op)
    assert not get_operation_type(forged).is_confined(forged)
