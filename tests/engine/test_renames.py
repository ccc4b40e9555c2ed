"""Renaming a topic: Kafka does not support this, so a new name is a new, empty topic."""

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.report.outcome import plan_outcome, run_outcome
from tests.engine.world import World, topic

DELETES = PlanScope(allow_deletes=True)
SHAPE = {"partitions": 1, "replicationFactor": 1}


def list_statuses(result: ApplyResult) -> dict[str, Status]:
    """Return the operations by id."""
    return {id_: r.status for id_, r in result.results.items()}


def make_world_with_topic(name: str) -> World:
    """A project that owns a topic of this name."""
    world = World()
    world.apply(topic(name, **SHAPE))
    return world


@pytest.mark.parametrize("preflight", [True, False])
def test_colliding_new_name_is_created_after_old_topic_is_deleted(preflight: bool) -> None:
    world = make_world_with_topic("ren_a")
    plan = world.plan(topic("ren.a", **SHAPE), scope=PlanScope(allow_deletes=True, preflight=preflight))
    created = next(op for op in plan.operations if op.verb == "topic.create")
    assert list(created.needs) == ["topic.delete:Topic/ren_a"]
    assert "rename" in [d.code for d in plan.diagnostics]
    assert world.run(plan).complete
    assert set(world.cluster.topics()) == {"ren.a"}


@pytest.mark.parametrize("preflight", [True, False])
def test_colliding_new_name_is_blocked_while_old_topic_stays(preflight: bool) -> None:
    world = make_world_with_topic("ren_a")
    plan = world.plan(topic("ren.a", **SHAPE), topic("other", **SHAPE), scope=PlanScope(preflight=preflight))
    assert {str(c.id): c.blocked for c in plan.changes}["Topic/ren.a"] == "name-collision"
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    result = world.run(plan)
    assert run_outcome(result).exit_code is ExitCode.DENIED
    assert set(world.cluster.topics()) == {"ren_a", "other"}, "the rest of the plan goes on"


@pytest.mark.parametrize("preflight", [True, False])
def test_rename_of_protected_topic_is_blocked(preflight: bool) -> None:
    world = World()
    world.apply(topic("ren_a", **SHAPE, lifecycle={"preventDestroy": True}))
    plan = world.plan(topic("ren.a", **SHAPE), scope=PlanScope(allow_deletes=True, preflight=preflight))
    assert {str(c.id): c.blocked for c in plan.changes} == {
        "Topic/ren.a": "name-collision",
        "Topic/ren_a": "prevent-destroy",
    }
    assert not plan.operations


def test_new_topic_is_skipped_when_deletion_of_old_topic_fails() -> None:
    world = make_world_with_topic("ren_a")
    plan = world.plan(topic("ren.a", **SHAPE), scope=DELETES)
    world.cluster.faults.fail(Fault("TOPIC_DELETION_DISABLED", "no"), method="delete_topics", item="ren_a")
    result = world.run(plan)
    assert list_statuses(result) == {
        "topic.delete:Topic/ren_a": Status.FAILED,
        "topic.create:Topic/ren.a": Status.SKIPPED,
    }


def test_name_colliding_with_foreign_topic_is_blocked_without_preflight() -> None:
    world = World()
    world.cluster.create_topics([NewTopic("a_b", 1, 1, None, {})])
    plan = world.plan(topic("a.b", **SHAPE), scope=PlanScope(preflight=False))
    assert [d.code for d in plan.diagnostics] == ["name-collision"]
    assert not plan.operations


def test_new_name_for_same_declaration_is_reported_as_rename() -> None:
    world = World()
    spec = {**SHAPE, "configs": {"retention.ms": "60000"}}
    world.apply(topic("orders", **spec), topic("other", **SHAPE))
    plan = world.plan(topic("orders-v2", **spec), topic("other", **SHAPE), scope=DELETES)
    (diagnostic,) = [d for d in plan.diagnostics if d.code == "rename"]
    assert "orders-v2" in diagnostic.detail
    assert "orders'" in diagnostic.detail
    kept = world.plan(topic("orders-v2", **spec), topic("other", **SHAPE))
    assert "rename" in [d.code for d in kept.diagnostics], "also where the old topic stays as an orphan"


def test_two_rename_candidates_are_not_reported() -> None:
    world = World()
    world.apply(topic("a1", **SHAPE), topic("a2", **SHAPE))
    plan = world.plan(topic("b1", **SHAPE), scope=DELETES)
    assert "rename" not in [d.code for d in plan.diagnostics]
