"""A topic that was deleted and created again is a different topic, and plans report it (decision 0016)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kdeclare.core.diagnostics import Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Action, Reason
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import narrow
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.report.outcome import plan_outcome
from kdeclare.report.plan.plan_text import plan_text
from tests.engine.world import World, topic

ORDERS = topic("orders", partitions=3, replicationFactor=1, configs={"retention.ms": 1000})
ID = ResourceId("Topic", "orders")
DELETE = PlanScope(allow_deletes=True)


@pytest.fixture
def world() -> World:
    """A topic that was applied."""
    world = World(adopts=False)
    world.apply(ORDERS)
    return world


def recreate(world: World, partitions: int = 3, **configs: str) -> None:
    """Delete the topic and create another one of its name, as another client."""
    world.cluster.delete_topics({"orders": None})
    values = {key.replace("_", "."): value for key, value in configs.items()}
    world.cluster.create_topics([NewTopic("orders", partitions, 1, None, values)])


def find_topic_id(world: World) -> str:
    found: str = world.cluster.topics()["orders"].topic_id
    return found


def read_record(world: World) -> Mapping[str, Any]:
    found: Mapping[str, Any] = world.owned()["Topic/orders"]
    return found


def list_codes(plan: Plan) -> list[tuple[Severity, str]]:
    return [(d.severity, d.code) for d in plan.diagnostics]


def test_state_stores_id_of_created_topic(world: World) -> None:
    assert read_record(world)["topicId"] == find_topic_id(world)
    plan = world.plan(ORDERS)
    assert (plan.has_changes, plan.ownership) == (False, ())


def test_state_stores_id_of_adopted_topic() -> None:
    world = World(adopts=False)
    recreate(world, retention_ms="1000")
    world.apply(ORDERS)
    assert read_record(world)["topicId"] == find_topic_id(world)


def forget_id(world: World) -> None:
    """Convert the state to what kdeclare 0.1 wrote."""
    state = world.store.read()
    assert state is not None
    old = replace(narrow(state.resources["Topic/orders"], TopicRecord), topicId=None)
    with world.store.lock("test"):
        world.store.write(replace(state, serial=state.serial + 1, resources={"Topic/orders": old}))


def test_missing_topic_id_is_added_by_next_apply(world: World) -> None:
    forget_id(world)
    plan = world.plan(ORDERS)
    assert (plan.has_changes, list_codes(plan)) == (False, [])
    world.run(plan)
    assert read_record(world)["topicId"] == find_topic_id(world)


def test_topic_without_stored_id_is_changed_as_drift(world: World) -> None:
    forget_id(world)
    recreate(world, retention_ms="5")
    plan = world.plan(ORDERS)
    assert (plan.changes[0].reason, plan.changes[0].blocked) == (Reason.DRIFTED, None), "nothing proves it"


def test_recreated_equal_topic_is_adopted_with_warning(world: World) -> None:
    recreate(world, retention_ms="1000")
    plan = world.plan(ORDERS)
    assert (plan.has_changes, list_codes(plan)) == (False, [(Severity.WARNING, "recreated")])
    assert "deleted and re-created" in plan_text(plan)
    world.run(plan)
    assert read_record(world)["topicId"] == find_topic_id(world)
    assert list_codes(world.plan(ORDERS)) == []


def test_recreated_differing_topic_requires_adoption(world: World) -> None:
    recreate(world, retention_ms="5", segment_ms="7")
    plan = world.plan(ORDERS)
    (change,) = plan.changes
    assert (change.reason, change.blocked) == (Reason.RECREATED, "adoption")
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert "deleted and created again" in plan.diagnostics[0].detail
    assert "recreated: a different topic" in plan_text(plan)
    before = read_record(world)
    world.run(plan)
    assert (read_record(world), world.overrides("orders")["retention.ms"]) == (before, "5")
    plan = world.plan(ORDERS, scope=PlanScope(adopt=True))
    assert (plan.changes[0].reason, plan.changes[0].blocked) == (Reason.RECREATED, None)
    world.run(plan)
    assert read_record(world)["topicId"] == find_topic_id(world)
    assert world.overrides("orders") == {"retention.ms": "1000", "segment.ms": "7"}
    assert not world.plan(ORDERS).has_changes


def test_recreated_topic_ignores_owned_keys_of_old_topic(world: World) -> None:
    """An owned key of the old topic is not reset on the new one."""
    recreate(world, retention_ms="5")
    plan = world.plan(topic("orders", partitions=3, replicationFactor=1))
    assert (plan.has_changes, list_codes(plan)) == (False, [(Severity.WARNING, "recreated")])
    world.run(plan)
    assert world.overrides("orders") == {"retention.ms": "5"}


@pytest.mark.parametrize("scope", [DELETE, PlanScope(deletes=frozenset({ID}))])
def test_recreated_orphan_is_never_deleted(world: World, scope: PlanScope) -> None:
    recreate(world, retention_ms="1000")
    plan = world.plan(scope=scope)
    assert (plan.operations, list_codes(plan)) == ((), [(Severity.WARNING, "recreated")])
    assert "leaves the new topic unchanged" in plan.diagnostics[0].detail
    world.run(plan)
    assert "orders" in world.cluster.topics()
    assert "Topic/orders" not in world.owned(), "what was owned is gone"


def test_orphan_that_was_not_recreated_is_deleted(world: World) -> None:
    world.apply(scope=DELETE)
    assert "orders" not in world.cluster.topics()


def test_ad_hoc_deletion_ignores_topic_recreation(world: World) -> None:
    recreate(world)
    plan = world.plan(scope=PlanScope(by_hand=True, removals=frozenset({ID})))
    assert [(c.action, c.reason) for c in plan.changes] == [(Action.DELETE, Reason.ASKED)]


def test_topic_recreated_by_apply_has_new_id(world: World) -> None:
    world.cluster.delete_topics({"orders": None})
    plan = world.plan(ORDERS)
    assert plan.changes[0].reason is Reason.MISSING
    world.run(plan)
    assert read_record(world)["topicId"] == find_topic_id(world)
    world.rollback()
    assert "orders" not in world.cluster.topics()


def test_rollback_restores_stored_topic_id(world: World) -> None:
    recreate(world, retention_ms="5")
    before = read_record(world)
    world.apply(ORDERS, scope=PlanScope(adopt=True))
    world.rollback()
    assert read_record(world) == before
    assert world.overrides("orders") == {"retention.ms": "5"}
    assert world.plan(ORDERS).changes[0].reason is Reason.RECREATED
