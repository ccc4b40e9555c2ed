"""Deletions use topic ids: a topic that was created again under the same name is never deleted."""

from typing import Any

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, OperationResult, Status
from kdeclare.core.provider.plan_options import choose_options
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.client.retrying_cluster import RetryingCluster
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from kdeclare.report.run.run_text import render_run_text
from tests.engine.world import World, topic

SPEC: dict[str, Any] = {"partitions": 1, "replicationFactor": 1}
QUOTA = Fault("THROTTLING_QUOTA_EXCEEDED", "quota", FaultKind.RETRIABLE)


def create_again(other: MemoryCluster) -> None:
    """Delete a topic, if it exists, and create it again in the same shape, as another client."""
    other.delete_topics({"x": None})
    other.create_topics([NewTopic("x", 1, 1, None, {})])
    other.produce("x", 7)


def make_world(cluster: MemoryCluster | None = None) -> World:
    world = World(cluster or MemoryCluster())
    world.apply(topic("x", **SPEC))
    return world


def plan_deletion(world: World, **scope: Any) -> Plan:
    return world.plan(scope=PlanScope(allow_deletes=True, **scope))


def count_records(world: World) -> int | None:
    return world.cluster.record_counts(["x"]).get("x")


def get_only_result(run: ApplyResult) -> OperationResult:
    (result,) = run.results.values()
    return result


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def test_deletion_plan_names_the_topic_id() -> None:
    world = make_world()
    (op,) = plan_deletion(world).operations
    assert dump_arguments(op.args)["topic_id"] == world.cluster.topics()["x"].topic_id


def test_topic_recreated_before_deletion_request_is_kept() -> None:
    world = make_world()
    plan = plan_deletion(world)
    world.cluster.faults.run_before(create_again, method="delete_topics")
    run = world.run(plan)
    assert count_records(world) == 7
    assert get_only_result(run).status is Status.DONE  # the topic that was to be deleted is deleted
    assert not world.owned()


def test_topic_recreated_during_quota_retry_is_kept() -> None:
    world = make_world()
    plan = plan_deletion(world)
    world.cluster.faults.fail(QUOTA, method="delete_topics", item="x")
    world.cluster.faults.run_before(create_again, method="delete_topics", nth=2)
    memory = world.cluster
    world.cluster = RetryingCluster(memory, RetryPolicy(sleep=lambda _: None))  # type: ignore[assignment]
    run = world.run(plan)
    world.cluster = memory
    assert len(memory.requests("delete_topics")) == 2
    assert count_records(world) == 7
    assert get_only_result(run).is_good


def test_topic_recreated_after_timed_out_deletion_is_kept() -> None:
    for after_effect in (False, True):
        world = make_world()
        plan = plan_deletion(world)
        world.cluster.faults.time_out(after_effect=after_effect, method="delete_topics")
        world.cluster.faults.run_before(create_again, method="delete_topics", nth=2)
        run = world.run(plan)
        assert count_records(world) == 7
        assert get_only_result(run).status is Status.DONE


def test_timed_out_deletion_is_settled_by_sending_it_again() -> None:
    world = make_world()
    plan = plan_deletion(world)
    world.cluster.faults.time_out(after_effect=False, method="delete_topics")
    assert get_only_result(world.run(plan)).status is Status.DONE
    assert not world.cluster.topics()


def test_rollback_of_creation_keeps_recreated_topic() -> None:
    world = make_world()
    create_again(world.cluster)
    plan = world.plan_rollback(allow_data_loss=True)
    assert list_codes(plan) == ["conflict"]
    assert "a different topic now has the same name" in plan.diagnostics[0].detail
    assert not plan.operations
    assert count_records(world) == 7


def test_topic_recreated_after_rollback_plan_is_kept() -> None:
    world = make_world()
    plan = world.plan_rollback()
    world.cluster.faults.run_before(create_again, method="record_counts")
    run = world.run(plan)
    assert count_records(world) == 7
    assert not get_only_result(run).is_good  # it holds records by now: nothing is sent


def test_creation_with_unknown_outcome_is_a_conflict() -> None:
    world = World()
    world.cluster.faults.time_out(after_effect=True, method="create_topics", nth=2)  # the first one validates
    plan = world.plan(topic("x", **SPEC))
    world.cluster.faults.clear()
    world.cluster.faults.time_out(after_effect=True, method="create_topics")
    assert get_only_result(world.run(plan)).status is Status.DONE
    back = world.plan_rollback()
    assert list_codes(back) == ["conflict"]
    assert "does not contain the id of the topic" in back.diagnostics[0].detail
    assert "kdeclare topic delete x" in back.diagnostics[0].hint
    assert run_outcome(world.run(back)).exit_code is ExitCode.PARTIAL
    assert "x" in world.cluster.topics()


def test_run_of_0_1_has_no_proven_topic_ids() -> None:
    world = make_world()
    (run_id,) = world.store.runs()
    topic_id = world.cluster.topics()["x"].topic_id
    journal = world.store._runs[run_id].lines
    journal[:] = [line.replace(f', "topic_id": "{topic_id}"', "") for line in journal]
    journal[:] = [line.replace(', "topic_id": null', "") for line in journal]
    assert "topic_id" not in str(world.store.entries(run_id))
    assert list_codes(world.plan_rollback()) == ["conflict"]


def test_cluster_without_topic_ids_needs_delete_by_name() -> None:
    world = make_world(MemoryCluster(topic_ids=False))
    plan = plan_deletion(world)
    assert [d.code for d in plan.diagnostics if d.is_blocking] == ["no-topic-id"]
    assert not plan.operations
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert world.run(plan_deletion(world, options=choose_options(delete_by_name=True))).complete
    assert not world.cluster.topics()


def test_rollback_on_cluster_without_topic_ids_needs_delete_by_name() -> None:
    world = make_world(MemoryCluster(topic_ids=False))
    assert list_codes(world.plan_rollback()) == ["conflict"]
    assert "--delete-by-name" in world.plan_rollback().diagnostics[0].hint
    assert world.rollback(delete_by_name=True).complete
    assert not world.cluster.topics()


def test_rollback_of_deletion_owns_nothing_and_suggests_no_retry() -> None:
    world = make_world()
    assert world.run(plan_deletion(world)).complete
    run = world.rollback()
    outcome = run_outcome(run)
    assert outcome.exit_code is ExitCode.PARTIAL
    assert not world.owned()
    (lost,) = run.plan.diagnostics
    assert "the topic's records cannot be restored. The topic remains deleted" in lost.detail
    assert "tries again" not in render_run_text(run)
    assert world.plan(topic("x", **SPEC)).summary.create == 1


def test_rollback_of_run_with_deletion_restores_other_changes() -> None:
    world = World()
    world.apply(topic("x", **SPEC), topic("y", **SPEC))
    changed = topic("y", **SPEC, configs={"retention.ms": "5"})
    world.run(world.plan(changed, scope=PlanScope(allow_deletes=True)))
    before = world.owned()["Topic/y"]
    run = world.rollback()
    assert world.overrides("y") == {}
    assert world.owned().keys() == {"Topic/y"}
    assert world.owned()["Topic/y"] != before
    assert "tries again" not in render_run_text(run)


def test_deletion_not_yet_visible_is_irreversible() -> None:
    world = make_world(MemoryCluster(metadata_lag=0))
    world.cluster.metadata_lag = 1000
    plan = plan_deletion(world)
    assert world.run(plan).complete
    assert "x" in world.cluster.topics()
    assert list_codes(world.plan_rollback()) == ["irreversible"]
