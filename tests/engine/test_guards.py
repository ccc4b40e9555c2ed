"""Accidents that guards prevent: changed factors, conflicting moves, deleted topics, orphans."""

from collections.abc import Sequence
from typing import Any

import pytest

from kdeclare.core.diagnostics import Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, OperationResult, Status
from kdeclare.core.provider.plan_options import choose_options
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from tests.cases import case
from tests.engine.world import World, desired, topic
from tests.jsontypes import dump_args, untyped

GUARDED = PlanScope(options=choose_options(rf_guard="client"))


def assigned_topic(name: str, *replicas: Sequence[int], **more: Any) -> DesiredResource:
    return topic(name, assignments={n: list(r) for n, r in enumerate(replicas)}, **more)


def reassignment(*wanted: tuple[str, Sequence[int]], name: str = "move", **more: Any) -> DesiredResource:
    """Declare a reassignment. Each item of ``wanted`` is ``topic-partition`` with its replicas."""
    partitions = []
    for text, replicas in wanted:
        where = TopicPartition.parse(text)
        partitions.append({"topic": where.topic, "partition": where.partition, "replicas": list(replicas)})
    return desired("Reassignment", name, partitions=partitions, **more)


def expecting_reassignment(where: str, replicas: Sequence[int], expected: Sequence[int]) -> DesiredResource:
    tp = TopicPartition.parse(where)
    one = {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
    return desired("Reassignment", "move", partitions=[{**one, "expectedReplicas": list(expected)}])


def make_world(**more: Any) -> World:
    return World(MemoryCluster({1: "a", 2: "b", 3: "c", 4: "a"}, **more))


def create_topic(world: World, *replicas: Sequence[int], name: str = "t", **more: Any) -> DesiredResource:
    """Create a topic, and return a manifest for it that does not mention replicas."""
    world.apply(assigned_topic(name, *replicas, **more))
    return topic(name, **more)


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def get_exit_code(plan: Plan) -> ExitCode:
    return plan_outcome(plan).exit_code


def list_moves(result: ApplyResult) -> list[OperationResult]:
    """Return the results of the reassignments, without those of later operations."""
    return [r for r in result.results.values() if r.id.startswith("partitions.reassign")]


def list_replicas(world: World, name: str = "t") -> list[tuple[int, ...]]:
    """Return the replicas as described: a union during a move."""
    return [p.replicas for p in world.cluster.topics([name])[name].partitions]


def move_as_other_client(world: World, where: str, target: Sequence[int], ticks: int = 100) -> None:
    """Start a reassignment as another client; it continues until `finish`."""
    world.cluster.tick_on_poll = False
    world.cluster.move_ticks = ticks
    partition = TopicPartition.parse(where)
    results = world.cluster.elsewhere().reassign(
        {partition: tuple(target)}, allow_replication_factor_change=True
    )
    assert results == {partition: None}


def finish_moves(world: World) -> None:
    world.cluster.tick(100)
    world.cluster.move_ticks = 0


# The replication factor.


def test_reassignment_that_changes_factor_is_denied() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, reassignment(("t-0", [1, 2])))
    (denial,) = plan.diagnostics
    assert (denial.code, denial.severity) == ("replication-factor-guard", Severity.DENIED)
    assert "from 3 to 2" in denial.detail
    assert get_exit_code(plan) is ExitCode.DENIED
    assert plan.summary.blocked == 1
    assert not plan.operations
    assert run_outcome(world.run(plan)).exit_code is ExitCode.DENIED
    assert list_replicas(world) == [(1, 2, 3)]


def test_denial_blocks_only_its_resource() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, reassignment(("t-0", [1, 2])), topic("other", partitions=1, replicationFactor=1))
    result = world.run(plan)
    assert "other" in world.cluster.topics()
    assert run_outcome(result).exit_code is ExitCode.DENIED  # the rest has been done anyway


def test_factor_guard_is_lifted_only_for_allowed_partitions() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3], [1, 2, 3])
    wanted = reassignment(("t-0", [1, 2]), ("t-1", [2, 3, 4]), allowReplicationFactorChange=True)
    plan = world.plan(kept, wanted)
    guard = {
        name: dump_args(op)["allow_replication_factor_change"]
        for op in plan.operations
        if op.verb == "partitions.reassign"
        for name in dump_args(op)["partitions"]
    }
    assert guard == {"t-0": True, "t-1": False}
    assert world.run(plan).complete
    assert list_replicas(world) == [(1, 2), (2, 3, 4)]
    assert not world.plan(kept, wanted).has_changes


def test_broker_guard_refuses_factor_changed_after_plan() -> None:
    """RFG: KIP-860 exists for changes that no client can see."""
    world = make_world()
    kept = create_topic(world, [1, 2])
    plan = world.plan(kept, reassignment(("t-0", [2, 3])))

    def grow(other: MemoryCluster) -> None:
        other.reassign({TopicPartition("t", 0): (1, 2, 3)}, allow_replication_factor_change=True)

    world.cluster.faults.run_before(grow, method="reassign")
    (result,) = list_moves(world.run(plan))
    assert (result.status, result.error) == (Status.FAILED, "INVALID_REPLICATION_FACTOR")
    assert "from 3 to 2" in result.message
    assert list_replicas(world) == [(1, 2, 3)]


def test_brokers_without_guard_get_no_reassignment() -> None:
    """KIP-860 on old brokers, in its own words."""
    world = make_world(rf_guard=False)
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, reassignment(("t-0", [2, 3, 4])))
    (denial,) = plan.diagnostics
    assert denial.code == "replication-factor-guard"
    assert denial.detail.startswith(
        "The broker does not support the AllowReplicationFactorChange option for the "
        "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
        "the server version"
    )
    assert "--rf-guard=client" in denial.hint
    assert get_exit_code(plan) is ExitCode.DENIED
    assert not plan.operations


def test_declared_factor_needs_no_guard_on_old_brokers() -> None:
    world = make_world(rf_guard=False)
    create_topic(world, [1, 2])
    grown = topic("t", partitions=1, replicationFactor=3)
    assert world.apply(grown).complete
    assert [len(r) for r in list_replicas(world)] == [3]


def test_client_guard_works_on_old_brokers() -> None:
    world = make_world(rf_guard=False)
    kept = create_topic(world, [1, 2, 3])
    wanted = reassignment(("t-0", [2, 3, 4]))
    plan = world.plan(kept, wanted, scope=GUARDED)
    assert [d.code for d in plan.diagnostics] == ["no-throttle"]
    assert untyped(dump_arguments(plan.operations[0].args))["client_guard"] is True
    assert world.run(plan).complete
    assert list_replicas(world) == [(2, 3, 4)]
    assert world.rollback().complete
    assert list_replicas(world) == [(1, 2, 3)]


def test_client_guard_refuses_factor_changed_since_plan() -> None:
    world = make_world(rf_guard=False)
    kept = create_topic(world, [1, 2])
    plan = world.plan(kept, reassignment(("t-0", [2, 3])), scope=GUARDED)
    world.cluster.elsewhere().reassign(
        {TopicPartition("t", 0): (1, 2, 3)}, allow_replication_factor_change=True
    )
    result = world.run(plan, skip_stale=True)
    assert [r.status for r in list_moves(result)] == [Status.STALE]
    assert list_replicas(world) == [(1, 2, 3)]


def test_client_guard_denies_different_factor() -> None:
    world = make_world(rf_guard=False)
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, reassignment(("t-0", [1, 2])), scope=GUARDED)
    assert list_codes(plan) == ["replication-factor-guard"]
    assert get_exit_code(plan) is ExitCode.DENIED


def test_client_guard_is_unused_when_brokers_guard() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, reassignment(("t-0", [2, 3, 4])), scope=GUARDED)
    assert "client_guard" not in dump_arguments(plan.operations[0].args)


# Expected replicas.


def test_unexpected_replicas_are_denied() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, expecting_reassignment("t-0", [2, 3, 4], [3, 2, 1]))
    (denial,) = plan.diagnostics
    assert denial.code == "expected-replicas"
    assert "[1, 2, 3]" in denial.detail
    assert "[3, 2, 1]" in denial.detail
    assert get_exit_code(plan) is ExitCode.DENIED
    assert world.apply(kept, expecting_reassignment("t-0", [2, 3, 4], [1, 2, 3])).complete
    assert list_replicas(world) == [(2, 3, 4)]


def test_expected_replicas_are_ignored_after_completed_move() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    wanted = expecting_reassignment("t-0", [2, 3, 4], [1, 2, 3])
    world.apply(kept, wanted)
    assert not world.plan(kept, wanted).has_changes
    assert get_exit_code(world.plan(kept, wanted)) is ExitCode.OK


# Reassignments in flight.


@case("LST-03")
def test_factor_is_not_read_from_replica_union() -> None:
    """LST-03, KIP-860: the target of a listed move is its replicas without those that it removes."""
    move = Move(replicas=(1, 2, 3, 0), adding=(3,), removing=(0,))
    assert move.target == (1, 2, 3)
    world = make_world()
    create_topic(world, [1, 2, 3])
    move_as_other_client(world, "t-0", [2, 3, 4])
    assert len(list_replicas(world)[0]) == 4  # as described
    assert not world.plan(topic("t", partitions=1, replicationFactor=3)).changes
    plan = world.plan(topic("t", partitions=1, replicationFactor=4))
    (field,) = plan.changes[0].fields
    assert (field.before, field.after) == (3, 4)


def test_factor_is_not_read_from_stale_describe() -> None:
    """KIP-860, example 2: describe still shows the union after the move has ended."""
    world = make_world()
    create_topic(world, [1, 2, 3])
    move_as_other_client(world, "t-0", [2, 3, 4])
    world.cluster.tick_on_poll = True
    world.cluster.tick(99)  # the next poll of reassignments is the last one that shows the move
    assert not world.plan(topic("t", partitions=1, replicationFactor=3)).changes


def test_factor_change_during_move_of_another_client_is_denied() -> None:
    world = make_world()
    create_topic(world, [1, 2, 3])
    move_as_other_client(world, "t-0", [2, 3, 4])
    plan = world.plan(topic("t", partitions=1, replicationFactor=2))
    (denial,) = plan.diagnostics
    assert (denial.code, denial.severity) == ("move-in-flight", Severity.DENIED)
    assert "[2, 3, 4]" in denial.detail
    assert get_exit_code(plan) is ExitCode.DENIED
    assert not plan.operations
    finish_moves(world)
    assert world.apply(topic("t", partitions=1, replicationFactor=2)).complete


def test_partition_increase_during_move_is_denied() -> None:
    """PRT-06: Kafka would give new partitions as many replicas as the union has."""
    world = make_world()
    create_topic(world, [1, 2, 3])
    move_as_other_client(world, "t-0", [2, 3, 4])
    grown = topic("t", partitions=2, replicationFactor=3)
    plan = world.plan(grown)
    assert list_codes(plan) == ["move-in-flight"]
    assert not plan.operations
    finish_moves(world)
    assert world.apply(grown).complete
    assert [len(r) for r in list_replicas(world)] == [3, 3]


def test_configs_can_change_during_move() -> None:
    world = make_world()
    create_topic(world, [1, 2, 3])
    move_as_other_client(world, "t-0", [2, 3, 4])
    assert world.apply(topic("t", configs={"retention.ms": "5"})).complete
    assert world.overrides("t") == {"retention.ms": "5"}


def test_reassignment_during_move_of_another_client_is_denied() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3], [1, 2, 3])
    move_as_other_client(world, "t-0", [2, 3, 4])
    plan = world.plan(kept, reassignment(("t-0", [1, 3, 4])))
    assert list_codes(plan) == ["move-in-flight", "move-under-way"]
    assert get_exit_code(plan) is ExitCode.DENIED
    assert not plan.operations


def test_move_in_flight_to_declared_target_needs_no_change() -> None:
    """TOOL-04: in progress does not mean done; completion is determined by the replicas."""
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    wanted = reassignment(("t-0", [2, 3, 4]))
    move_as_other_client(world, "t-0", [2, 3, 4])
    assert not world.plan(kept, wanted).changes
    elsewhere = world.cluster.elsewhere()
    elsewhere.reassign({TopicPartition("t", 0): None}, allow_replication_factor_change=True)
    world.cluster.move_ticks = 0
    plan = world.plan(kept, wanted)  # canceled: the move has ended away from its target
    assert [str(c.id) for c in plan.changes] == ["Reassignment/move"]
    assert world.run(plan).complete


def test_move_canceled_by_another_client_fails() -> None:
    """TOOL-04, KIP4-08: a move that is no longer listed did not necessarily succeed."""
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, reassignment(("t-0", [2, 3, 4])))
    world.cluster.move_ticks = 3

    def cancel(other: MemoryCluster) -> None:
        if other.moves(["t"]):
            other.reassign({TopicPartition("t", 0): None}, allow_replication_factor_change=True)

    world.cluster.tick_on_poll = False
    world.cluster.faults.run_before(cancel, method="moves", nth=None)
    (result,) = list_moves(world.run(plan))
    assert (result.status, result.error) == (Status.FAILED, "move-overridden")
    assert sorted(list_replicas(world)[0]) == [1, 2, 3]


def test_apply_waits_for_completed_move() -> None:
    """KIP4-08: work that Kafka does after the request is watched until it is complete."""
    world = make_world(move_ticks=7)
    kept = create_topic(world, [1, 2, 3])
    assert world.apply(kept, reassignment(("t-0", [2, 3, 4]))).complete
    assert not world.cluster.moves()
    assert list_replicas(world) == [(2, 3, 4)]


def test_move_timeout_leaves_move_in_flight() -> None:
    world = make_world(move_ticks=1_000_000)
    kept = create_topic(world, [1, 2, 3])
    wanted = reassignment(("t-0", [2, 3, 4]))
    result = world.apply(kept, wanted, move_timeout_s=60)
    (only,) = list_moves(result)
    assert (only.status, only.error) == (Status.STARTED, "move-timeout")
    assert run_outcome(result).exit_code is ExitCode.PARTIAL
    assert not world.plan(kept, wanted).has_changes  # it moves there


def test_no_wait_with_move_in_flight_succeeds() -> None:
    world = make_world(move_ticks=1_000_000)
    kept = create_topic(world, [1, 2, 3])
    result = world.apply(kept, reassignment(("t-0", [2, 3, 4])), wait=False)
    assert [r.status for r in list_moves(result)] == [Status.STARTED]
    assert run_outcome(result).exit_code is ExitCode.OK


# Two resources, one partition.


def test_two_reassignments_of_one_partition_are_contradiction() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(
        kept,
        reassignment(("t-0", [2, 3, 4]), name="east"),
        reassignment(("t-0", [1, 3, 4]), name="west"),
    )
    (problem,) = (d for d in plan.diagnostics if d.is_error)
    assert problem.code == "contradiction"
    assert "Reassignment/east" in problem.detail
    assert "Reassignment/west" in problem.detail
    assert get_exit_code(plan) is ExitCode.ERROR


def test_factor_change_and_reassignment_are_contradiction() -> None:
    world = make_world()
    create_topic(world, [1, 2, 3])
    plan = world.plan(topic("t", partitions=1, replicationFactor=2), reassignment(("t-0", [2, 3, 4])))
    assert "contradiction" in list_codes(plan)
    assert get_exit_code(plan) is ExitCode.ERROR


def test_two_reassignments_of_different_partitions_are_applied() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3], [1, 2, 3])
    east, west = reassignment(("t-0", [2, 3, 4]), name="east"), reassignment(("t-1", [1, 3, 4]), name="west")
    assert world.apply(kept, east, west).complete
    assert list_replicas(world) == [(2, 3, 4), (1, 3, 4)]


def test_reassignment_of_missing_topic_is_error_unless_declared() -> None:
    world = make_world()
    plan = world.plan(reassignment(("t-0", [2, 3, 4])))
    assert get_exit_code(plan) is ExitCode.ERROR
    assert list_codes(plan) == ["unknown-partition"]
    declared = (reassignment(("t-0", [2, 3, 4])), topic("t", partitions=1, replicationFactor=3))
    plan = world.plan(*declared)
    assert not plan.has_errors
    world.run(plan)
    assert world.apply(*declared).complete
    assert world.plan(*declared).summary.unchanged == 2


def test_unknown_broker_is_an_error() -> None:
    world = make_world()
    kept = create_topic(world, [1, 2, 3])
    plan = world.plan(kept, reassignment(("t-0", [1, 2, 9])))
    assert list_codes(plan) == ["unknown-broker"]
    assert get_exit_code(plan) is ExitCode.ERROR


# What may be deleted.


def protected_topic() -> DesiredResource:
    return topic("t", partitions=1, replicationFactor=1, lifecycle={"preventDestroy": True})


def test_prevent_destroy_blocks_allow_deletes() -> None:
    world = World()
    world.apply(protected_topic())
    plan = world.plan(scope=PlanScope(allow_deletes=True))
    assert list_codes(plan) == ["prevent-destroy"]
    assert get_exit_code(plan) is ExitCode.DENIED
    assert not plan.operations
    assert run_outcome(world.run(plan)).exit_code is ExitCode.DENIED
    assert "t" in world.cluster.topics()
    assert "Topic/t" in world.owned()


def test_prevent_destroy_follows_last_applied_manifest() -> None:
    world = World()
    world.apply(protected_topic())
    world.apply(topic("t", partitions=1, replicationFactor=1))
    assert world.apply(scope=PlanScope(allow_deletes=True)).complete
    assert "t" not in world.cluster.topics()


def test_internal_topic_is_never_deleted() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.cluster.mark_internal("t")
    plan = world.plan(scope=PlanScope(allow_deletes=True))
    assert get_exit_code(plan) is ExitCode.DENIED
    assert not plan.operations


def test_forget_releases_topic_without_requests() -> None:
    world = World()
    world.apply(protected_topic())
    world.cluster.calls.clear()
    plan = world.plan(scope=PlanScope(forget=frozenset({ResourceId("Topic", "t")})))
    assert [c.action for c in plan.changes] == [Action.FORGET]
    assert plan.summary.forget == 1
    assert run_outcome(world.run(plan)).exit_code is ExitCode.OK
    assert world.owned() == {}
    assert not world.cluster.requests()
    plan = world.plan()
    assert (plan.changes, plan.summary.unmanaged) == ((), 1)
    assert world.rollback().complete
    assert "Topic/t" in world.owned()


def test_forget_of_declared_or_unknown_resource_is_an_error() -> None:
    world = World()
    world.apply(protected_topic())
    scope = PlanScope(forget=frozenset({ResourceId("Topic", "t"), ResourceId("Topic", "nobody")}))
    plan = world.plan(protected_topic(), scope=scope)
    assert sorted(list_codes(plan)) == ["still-declared", "unknown-resource"]
    assert get_exit_code(plan) is ExitCode.ERROR


@pytest.mark.parametrize(
    "scope",
    [
        PlanScope(complete=False, allow_deletes=True),
        PlanScope(targets=frozenset({ResourceId("Topic", "kept")}), allow_deletes=True),
        PlanScope(selector={"team": "a"}, allow_deletes=True),
    ],
    ids=["path", "target", "selector"],
)
def test_partial_scope_never_deletes(scope: PlanScope) -> None:
    world = World()
    kept = desired("Topic", "kept", {"team": "a"}, partitions=1, replicationFactor=1)
    world.apply(kept, topic("gone", partitions=1, replicationFactor=1))
    plan = world.plan(kept, scope=scope)
    assert (plan.changes, plan.diagnostics) == ((), ())
    assert world.apply(kept, scope=scope).complete
    assert "gone" in world.cluster.topics()
    assert "Topic/gone" in world.owned()


def test_target_and_selector_limit_changes() -> None:
    world = World()
    one = desired("Topic", "one", {"team": "a"}, partitions=1, replicationFactor=1)
    two = desired("Topic", "two", {"team": "b"}, partitions=1, replicationFactor=1)
    world.apply(one, two, scope=PlanScope(selector={"team": "b"}))
    assert list(world.cluster.topics()) == ["two"]
    world.apply(one, two, scope=PlanScope(targets=frozenset({one.id})))
    assert sorted(world.cluster.topics()) == ["one", "two"]


def test_unknown_target_is_an_error() -> None:
    plan = World().plan(scope=PlanScope(targets=frozenset({ResourceId("Topic", "nobody")})))
    assert list_codes(plan) == ["unknown-target"]
    assert get_exit_code(plan) is ExitCode.ERROR


def test_misspelled_target_suggests_declared_resource() -> None:
    one = desired("Topic", "orders", partitions=1, replicationFactor=1)
    plan = World().plan(one, scope=PlanScope(targets=frozenset({ResourceId("Topic", "order")})))
    assert [d.hint for d in plan.diagnostics] == ["Did you mean 'Topic/orders'?"]


def test_selector_without_matches_is_warned_of() -> None:
    one = desired("Topic", "one", {"team": "a"}, partitions=1, replicationFactor=1)
    plan = World().plan(one, scope=PlanScope(selector={"team": "b"}))
    assert list_codes(plan) == ["nothing-selected"]
    assert "team=b" in plan.diagnostics[0].detail
    assert get_exit_code(plan) is ExitCode.OK
    assert list_codes(World().plan(one, scope=PlanScope(selector={"team": "a"}))) == []


def test_orphan_deleted_by_another_client_is_released() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.cluster.elsewhere().delete_topics({"t": None})
    plan = world.plan()
    assert not plan.has_changes
    world.run(plan)
    assert world.owned() == {}
