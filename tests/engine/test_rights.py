"""Planning and applying with few permissions: what is not visible is not treated as absent."""

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.engine.executor.propagation import await_visibility
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.request_values import NewTopic
from tests.connections import connections_to
from tests.engine.world import World, topic

CLUSTER = Fault("CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")
TOPIC = Fault("TOPIC_AUTHORIZATION_FAILED", "Authorization failed.")


@pytest.mark.parametrize("allow_deletes", [False, True])
def test_invisible_orphan_stays_owned(allow_deletes: bool) -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1), topic("u", partitions=1, replicationFactor=1))
    world.cluster.hidden = frozenset({"t"})
    plan = world.plan(
        topic("u", partitions=1, replicationFactor=1), scope=PlanScope(allow_deletes=allow_deletes)
    )
    [found] = [d for d in plan.diagnostics if d.resource == "Topic/t"]
    assert (found.code, str(found.severity)) == ("not-visible", "warning")
    assert "without the Describe permission on topic t," in found.detail
    assert plan.ownership == ()
    assert not plan.has_changes
    assert world.run(plan).complete
    assert "Topic/t" in world.owned()
    world.cluster.hidden = frozenset()
    assert [d.code for d in world.plan(topic("u", partitions=1)).diagnostics] == ["orphaned"]


def test_invisible_declared_topic_blocks_only_itself() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.cluster.hidden = frozenset({"t"})
    plan = world.plan(topic("t", partitions=3), topic("u", partitions=1, replicationFactor=1))
    assert [(d.code, str(d.severity)) for d in plan.diagnostics] == [("not-visible", "denied")]
    assert (plan.summary.blocked, plan.summary.create) == (1, 1)
    assert {str(op.resource) for op in plan.operations} == {"Topic/u"}
    world.run(plan)
    assert world.owned().keys() == {"Topic/t", "Topic/u"}


def test_invisible_unowned_topic_is_not_created() -> None:
    """A list of all topics omits it like an absent topic; only a request by name shows the difference."""
    world = World()
    world.cluster.create_topics([NewTopic("t", 1, 1, None, {})])
    world.cluster.hidden = frozenset({"t"})
    plan = world.plan(topic("t", partitions=3), topic("u", partitions=1, replicationFactor=1))
    assert [(d.code, str(d.severity), d.resource) for d in plan.diagnostics] == [
        ("not-visible", "denied", "Topic/t")
    ]
    assert {str(op.resource) for op in plan.operations} == {"Topic/u"}
    assert world.run(plan).complete
    assert world.owned().keys() == {"Topic/u"}


def test_forget_of_invisible_topic_releases_it() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.cluster.hidden = frozenset({"t"})
    plan = world.plan(scope=PlanScope(forget=frozenset({topic("t", partitions=1).id})))
    world.run(plan)
    assert world.owned() == {}


def test_invisible_reassignments_are_a_warning() -> None:
    world = World()
    world.cluster.faults.fail(CLUSTER, nth=None, method="moves")
    plan = world.plan(topic("t", partitions=1, replicationFactor=1))
    [found] = plan.diagnostics
    assert (found.code, found.summary, str(found.severity)) == (
        "not-authorized",
        "Reassignments not visible",
        "warning",
    )
    assert world.run(plan).complete
    assert world.cluster.topics(["t"])


def test_other_failure_to_read_reassignments_is_raised() -> None:
    world = World()
    world.cluster.faults.fail(Fault("UNKNOWN_SERVER_ERROR", "no"), nth=None, method="moves")
    with pytest.raises(Fault):
        world.plan(topic("t", partitions=1, replicationFactor=1))


def test_missing_permission_in_preflight_is_a_warning() -> None:
    world = World()
    world.apply(topic("grown", partitions=1, replicationFactor=1))
    for method, item in (("create_topics", "new"), ("create_partitions", "grown"), ("alter_configs", None)):
        world.cluster.faults.fail(TOPIC, nth=None, method=method, item=item)
    new = topic("new", partitions=1, replicationFactor=1)
    grown = topic("grown", partitions=2, replicationFactor=1)
    plan = world.plan(new, grown)
    assert [(d.code, str(d.severity), d.resource) for d in plan.diagnostics] == [
        ("not-authorized", "warning", "Topic/grown"),
        ("not-authorized", "warning", "Topic/new"),
    ]
    assert "needs Alter on topic grown (TOPIC_AUTHORIZATION_FAILED)" in plan.diagnostics[0].detail
    assert "needs Create on topic new or on the cluster" in plan.diagnostics[1].detail
    assert (plan.summary.create, plan.summary.update, plan.summary.blocked) == (1, 1, 0)
    run = world.run(plan)
    assert not run.complete, "apply says what was refused, resource by resource"
    assert world.cluster.topics()["grown"].partitions[0]
    assert "Topic/new" not in world.owned()


def test_await_visibility_ignores_invisible_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1), topic("u", partitions=1, replicationFactor=1))
    world.cluster.hidden = frozenset({"t"})
    monkeypatch.setattr(world.cluster, "is_caught_up", lambda: False)  # as without DESCRIBE on the cluster
    assert await_visibility(world.store, connections_to(world.cluster), world.clock, wait=False) == ()


def test_plan_does_not_wait_for_hidden_topic() -> None:
    """The controller reports to such a principal that the topic exists, but no broker will ever show it."""
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.cluster.hidden = frozenset({"t"})
    begun = world.clock.monotonic()
    plan = world.plan()
    assert world.clock.monotonic() - begun < 60, "the limit is 120 s"
    assert [d.code for d in plan.diagnostics] == ["not-visible"]
