"""``lifecycle.state: absent`` declares a deletion, so that it is reviewed (decision 0088)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.resources.changes import Action, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.plan_document import build_plan_document
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.report.outcome import plan_outcome, run_outcome
from kdeclare.report.plan.plan_text import plan_text
from tests.engine.world import World, topic
from tests.jsontypes import untyped


@pytest.fixture
def world() -> World:
    """An empty cluster, and no ``--adopt``."""
    return World(adopts=False)


def absent(name: str, **lifecycle: Any) -> DesiredResource:
    return topic(name, lifecycle={"state": "absent", **lifecycle})


def test_owned_topic_is_deleted_without_allow_deletes(world: World) -> None:
    world.apply(topic("orders", partitions=3), topic("kept"))
    plan = world.plan(absent("orders"), topic("kept"))
    (change,) = plan.changes
    assert (change.action, change.reason, change.risk) == (Action.DELETE, Reason.ABSENT, Risk.DESTRUCTIVE)
    assert "declared absent" in plan_text(plan)
    assert plan.summary.delete == 1
    result = world.run(plan)
    assert run_outcome(result).exit_code is ExitCode.OK
    assert set(world.cluster.topics()) == {"kept"}
    assert set(world.owned()) == {"Topic/kept"}


def test_absent_topic_that_does_not_exist_needs_no_change(world: World) -> None:
    plan = world.plan(absent("orders"), topic("kept"))
    assert [str(c.id) for c in plan.changes] == ["Topic/kept"]
    world.apply(topic("orders"))
    world.cluster.delete_topics({"orders": None})
    plan = world.plan(absent("orders"))
    assert (plan.changes, plan.operations) == ((), ())
    world.run(plan)
    assert world.owned() == {}  # released, because it is gone


def test_topic_of_others_is_deleted_only_if_adoption_is_allowed(world: World) -> None:
    world.cluster.create_topics([NewTopic("orders", 1, 1, None, {})])
    plan = world.plan(absent("orders"))
    (change,) = plan.changes
    assert (change.action, change.blocked, plan.operations) == (Action.DELETE, "adoption", ())
    (problem,) = plan.diagnostics
    assert problem.detail.startswith("Topic/orders is declared absent, but this project never applied it.")
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    world.run(plan)
    assert "orders" in world.cluster.topics()
    world.apply(absent("orders"), scope=PlanScope(adopt=True))
    assert world.cluster.topics() == {}
    world.cluster.create_topics([NewTopic("orders", 1, 1, None, {})])
    world.apply(absent("orders", adopt=True))
    assert (world.cluster.topics(), world.owned()) == ({}, {})


def test_protected_topic_must_be_applied_without_protection_first(world: World) -> None:
    world.apply(topic("orders", lifecycle={"preventDestroy": True}))
    plan = world.plan(absent("orders"))
    assert (plan.changes[0].blocked, plan.operations) == ("prevent-destroy", ())
    assert "first apply its manifest with preventDestroy: false" in str(plan.diagnostics[0].hint)
    world.run(plan)
    assert "Topic/orders" in world.owned()
    world.apply(topic("orders"))
    world.apply(absent("orders"))
    assert world.cluster.topics() == {}


def test_deletions_are_limited(world: World) -> None:
    names = [f"t{n}" for n in range(5)]
    world.apply(*map(topic, names))
    declared = tuple(map(absent, names))
    plan = world.plan(*declared)
    assert {c.blocked for c in plan.changes} == {"max-deletes"}
    plan = world.plan(*declared, scope=PlanScope(max_deletes=DeletionLimit.parse("5")))
    assert plan.summary.delete == 5


def test_target_and_part_of_project(world: World) -> None:
    world.apply(topic("orders"), topic("other"))
    other = PlanScope(targets=frozenset({ResourceId("Topic", "other")}))
    assert world.plan(absent("orders"), topic("other"), scope=other).changes == ()
    only = PlanScope(targets=frozenset({ResourceId("Topic", "orders")}))
    assert [c.reason for c in world.plan(absent("orders"), topic("other"), scope=only).changes] == [
        Reason.ABSENT
    ]
    # The deletion is declared, so it does not depend on manifests that were not loaded.
    assert world.plan(absent("orders"), scope=PlanScope(complete=False)).summary.delete == 1


def test_forget_of_declared_absence_is_refused(world: World) -> None:
    world.apply(topic("orders"))
    plan = world.plan(absent("orders"), scope=PlanScope(forget=frozenset({ResourceId("Topic", "orders")})))
    assert [d.code for d in plan.diagnostics if d.is_error] == ["still-declared"]


def test_recreated_topic_is_released_and_not_deleted(world: World) -> None:
    world.apply(topic("orders"))
    world.cluster.delete_topics({"orders": None})
    world.cluster.create_topics([NewTopic("orders", 1, 1, None, {})])
    plan = world.plan(absent("orders"))
    assert plan.operations == ()
    assert [d.code for d in plan.diagnostics] == ["recreated"]


def test_plan_file_of_declared_absence_is_accepted(world: World) -> None:
    world.apply(topic("orders"))
    plan = world.plan(absent("orders"))
    text, _ = render_plan_file(plan, datetime(2026, 1, 1, tzinfo=UTC))
    read = parse_plan(text, "plan.json")
    assert untyped(build_plan_document(read))["changes"][0]["reason"] == "absent"
    world.run(read)
    assert world.cluster.topics() == {}
