"""Ad hoc plans: they do not change ownership, and they touch only what was requested."""

from typing import Any

from hypothesis import given

from kdeclare.core.resources.changes import Action, Reason
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.executor.expectations import verify
from kdeclare.engine.planning.adhoc import find_claimed_changes, plan_adhoc
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.engine.test_properties import _configs, _overrides
from tests.engine.world import TestClock, World, nothing, topic

HAND = PlanScope(complete=False, by_hand=True)


def make_removal_scope(*names: str) -> PlanScope:
    return PlanScope(complete=False, by_hand=True, removals=frozenset(ResourceId("Topic", n) for n in names))


@given(declared=_configs, others=_overrides, asked=_configs)
def test_ad_hoc_change_leaves_other_fields_and_ownership_unchanged(
    declared: dict[str, Any], others: dict[str, str], asked: dict[str, Any]
) -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1, configs=declared))
    world.set("t", **others)
    before, owned = world.overrides("t"), world.owned()
    run = world.apply(topic("t", configs=asked), scope=HAND)
    assert run.complete
    after = world.overrides("t")
    assert {k: v for k, v in after.items() if k not in asked} == {
        k: v for k, v in before.items() if k not in asked
    }
    assert world.owned() == owned
    assert not world.plan(topic("t", configs=asked), scope=HAND).has_changes
    assert {change.reason for change in run.plan.changes} <= {Reason.ASKED}


def test_ad_hoc_plan_reports_no_orphans_or_unmanaged_topics() -> None:
    world = World()
    world.apply(topic("mine", partitions=1, replicationFactor=1))
    world.apply(topic("t", partitions=1, replicationFactor=1), scope=HAND)
    plan = world.plan(topic("t", partitions=2), scope=HAND)
    assert (plan.summary.orphaned, plan.summary.unmanaged) == (0, 0)
    assert plan.diagnostics == ()
    assert set(world.owned()) == {"Topic/mine"}


def test_ad_hoc_deletion_keeps_ownership_record() -> None:
    world = World()
    mine = topic("mine", partitions=1, replicationFactor=1)
    world.apply(mine)
    owned = world.owned()
    assert world.apply(scope=make_removal_scope("mine")).complete
    assert "mine" not in world.cluster.topics()
    assert world.owned() == owned
    (change,) = world.plan(mine).changes
    assert (change.action, change.reason) == (Action.CREATE, Reason.MISSING)


def test_ad_hoc_deletion_of_protected_topic_is_blocked() -> None:
    world = World()
    world.apply(topic("mine", partitions=1, replicationFactor=1, lifecycle={"preventDestroy": True}))
    run = world.apply(scope=make_removal_scope("mine"))
    assert not run.results
    assert "mine" in world.cluster.topics()
    assert run.plan.summary.blocked == 1


def test_partial_plan_excludes_failing_resources() -> None:
    world = World()
    world.apply(
        topic("two", partitions=2, replicationFactor=1), topic("a_b", partitions=1, replicationFactor=1)
    )
    asked = (
        topic("two", assignments={0: [1], 1: [77]}),  # an unknown broker, which the diff reports
        topic("a.b", partitions=1, replicationFactor=1),  # a name collision, which only the brokers report
        topic("fine", partitions=1, replicationFactor=1),
    )
    apart = plan_adhoc(
        world._build_request(asked, HAND), connections_to(world.cluster), world.secrets, nothing
    )
    assert {resource: [d.code for d in diagnostics] for resource, diagnostics in apart.failed.items()} == {
        "Topic/two": ["unknown-broker"],
        "Topic/a.b": ["refused-by-cluster"],
    }
    assert [str(change.id) for change in apart.plan.changes] == ["Topic/fine"]
    assert not apart.plan.has_errors


def test_claimed_changes_list_declared_and_owned_fields() -> None:
    world = World()
    declared = topic("t", partitions=2, replicationFactor=1, configs={"retention.ms": 1})
    world.apply(declared)
    asked = topic("t", partitions=3, configs={"retention.ms": 2, "flush.ms": 3})
    changes = world.plan(asked, scope=HAND).changes
    (found,) = find_claimed_changes(changes, (declared,), {})
    assert found.fields == ("partitions", "configs.retention.ms")
    state = world.store.read()
    assert state is not None
    (owned,) = find_claimed_changes(changes, (), state.resources)
    assert owned.fields == found.fields
    assert find_claimed_changes(changes, (), {}) == ()


def test_verify_waits_for_metadata() -> None:
    world = World(MemoryCluster())
    world.cluster.stale_reads = 3
    run = world.apply(topic("t", partitions=2, replicationFactor=1), scope=HAND)
    world.cluster._stale_reads_left = 3  # the brokers lag again, for the next client that reads
    found = verify(connections_to(world.cluster), run.plan.operations, TestClock(), 10)
    assert (found.unlike, len(found.live.get(KafkaState).topics["t"].partitions)) == ({}, 2)


def test_verify_timeout_reports_differing_fields() -> None:
    world = World()
    run = world.apply(topic("t", partitions=1, replicationFactor=1, configs={"retention.ms": 1}), scope=HAND)
    world.set("t", retention_ms="2")  # another client was faster
    found = verify(connections_to(world.cluster), run.plan.operations, TestClock(), 2)
    assert found.unlike == {"topic.create:Topic/t": ("configs",)}
    assert found.seconds >= 2


def test_verify_checks_last_operation_on_each_key() -> None:
    world = World()
    world.apply(
        topic("t", partitions=1, replicationFactor=1, configs={"cleanup.policy": ["delete"]}), scope=HAND
    )
    both = {"cleanup.policy": {"append": ["compact"], "subtract": ["delete"]}}
    run = world.apply(topic("t", configs=both), scope=HAND)
    assert len(run.plan.operations) == 2
    assert verify(connections_to(world.cluster), run.plan.operations, TestClock(), 1).unlike == {}
