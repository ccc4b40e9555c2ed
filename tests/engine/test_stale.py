"""Saved plans and runs with conflicts and failures: what is refused, skipped and continued."""

from dataclasses import replace
from typing import cast

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, OperationResult, Status
from kdeclare.core.plans.state import State
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.record_binding import dump_record, protect_record
from kdeclare.engine.planning.compared_request import validate_cluster_id
from kdeclare.engine.planning.planfile import compute_plan_id, parse_plan, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.providers.kafka.client.retrying_cluster import RetryingCluster
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.topic.record import TopicRecord
from kdeclare.report.outcome import plan_outcome, run_outcome
from tests.beds import topic_resource
from tests.engine.moving import (
    FOLLOWERS,
    LEADERS,
    MovingWorld,
    build_rates,
    create_topics,
    list_throttles,
    move_as_other_client,
    reassignment,
    set_configs,
)
from tests.engine.world import World, topic

REFUSED = Fault("INVALID_REQUEST", "Not on my cluster.")
AGAIN = Fault("NOT_CONTROLLER", "I am not the controller.", FaultKind.RETRIABLE)


def small_topic(name: str, **configs: str) -> DesiredResource:
    return topic(
        name,
        partitions=1,
        replicationFactor=1,
        configs={key.replace("_", "."): value for key, value in configs.items()},
    )


def growing_topic(name: str, *, grown: bool) -> DesiredResource:
    """Growing it needs a chain: partitions, then the factor, then min.insync.replicas."""
    count, factor, in_sync = (4, 3, "2") if grown else (2, 2, "1")
    configs = {"min.insync.replicas": in_sync}
    return topic(name, partitions=count, replicationFactor=factor, configs=configs)


def make_applied() -> tuple[DesiredResource, ...]:
    return small_topic("a", retention_ms="1"), small_topic("b", retention_ms="1")


def make_world() -> World:
    world = World()
    world.apply(*make_applied())
    world.cluster.calls.clear()
    return world


def make_edits() -> tuple[DesiredResource, ...]:
    return small_topic("a", retention_ms="2"), small_topic("b", retention_ms="2")


def save_and_load(plan: Plan) -> tuple[Plan, str]:
    """Return the plan as loaded from a file, and its id."""
    text, identity = render_plan_file(plan, None)
    return parse_plan(text, "it.plan"), identity


def catch_refusal(world: World, plan: Plan, identity: str | None = None) -> KdeclareError:
    """Check that apply is refused completely: no change request, no run, no new state."""
    runs, state, sent = world.store.runs(), world.store.read(), len(world.cluster.requests())
    with pytest.raises(KdeclareError) as refused:
        world.run(plan, identity=identity)
    assert (world.store.runs(), world.store.read(), len(world.cluster.requests())) == (runs, state, sent)
    return refused.value


def list_error_codes(problem: KdeclareError) -> list[str]:
    return [d.code for d in problem.diagnostics]


def get_detail(diagnostic: Diagnostic) -> str:
    return diagnostic.detail


def list_statuses(result: ApplyResult) -> dict[str, Status]:
    return {id_: r.status for id_, r in result.results.items()}


def get_exit_code(result: ApplyResult) -> ExitCode:
    return run_outcome(result).exit_code


# What makes a saved plan stale.


def test_stale_plan_names_all_failed_expectations_and_applies_nothing() -> None:
    world = make_world()
    plan, _ = save_and_load(world.plan(*make_edits()))
    world.set("a", retention_ms="7")
    world.set("b", retention_ms="8")
    problem = catch_refusal(world, plan)
    assert problem.exit_code is ExitCode.STALE
    assert [get_detail(d) for d in problem.diagnostics] == [
        'Topic/a retention.ms was "1" when the plan was made, but is now "7". Nothing was applied.',
        'Topic/b retention.ms was "1" when the plan was made, but is now "8". Nothing was applied.',
    ]
    assert all("--skip-stale" in d.hint for d in problem.diagnostics)


def test_plan_is_stale_after_topic_deletion() -> None:
    world = make_world()
    plan = world.plan(*make_edits())
    world.cluster.elsewhere().delete_topics({"a": None})
    problem = catch_refusal(world, plan)
    assert problem.exit_code is ExitCode.STALE
    assert {d.resource for d in problem.diagnostics} == {"Topic/a"}
    assert "is now not set" in get_detail(problem.diagnostics[0])


def test_plan_is_stale_after_topic_creation_by_others() -> None:
    world = make_world()
    plan = world.plan(*make_edits(), small_topic("c"))
    World(world.cluster).apply(small_topic("c"))
    problem = catch_refusal(world, plan)
    assert problem.exit_code is ExitCode.STALE
    assert get_detail(problem.diagnostics[0]).startswith(
        'Topic/c topic was "absent" when the plan was made, but is now "present"'
    )


def test_deletion_is_stale_after_topic_is_recreated() -> None:
    world = make_world()
    plan = world.plan(small_topic("a", retention_ms="1"), scope=PlanScope(allow_deletes=True))
    other = world.cluster.elsewhere()
    other.delete_topics({"b": None})
    World(other).apply(small_topic("b", retention_ms="1"))
    assert list_error_codes(catch_refusal(world, plan)) == ["stale"]


def test_plan_is_stale_after_ownership_change() -> None:
    world = make_world()
    plan = world.plan(*make_edits())
    state = world.store.read()
    assert state is not None
    record = protect_record("Topic", state.resources["Topic/a"])
    assert record is not None
    world.store.write(
        replace(state, serial=state.serial + 1, resources={**state.resources, "Topic/a": record})
    )
    problem = catch_refusal(world, plan)
    assert problem.exit_code is ExitCode.STALE
    assert get_detail(problem.diagnostics[0]).startswith("Topic/a ownership was ")


def test_plan_is_not_stale_after_unrelated_changes() -> None:
    world = make_world()
    plan, identity = save_and_load(
        world.plan(small_topic("a", retention_ms="2"), small_topic("b", retention_ms="1"))
    )
    world.set("a", flush_ms="9")  # another key of the same topic
    world.set("b", retention_ms="9")  # a resource that the plan does not touch
    World(world.cluster).apply(small_topic("c"))
    state = world.store.read()
    assert state is not None
    world.store.write(replace(state, serial=state.serial + 1))  # the serial is only informative
    assert get_exit_code(world.run(plan, identity=identity)) is ExitCode.OK
    assert world.overrides("a") == {"retention.ms": "2", "flush.ms": "9"}


def test_plan_of_another_lineage_is_refused() -> None:
    world = make_world()
    plan, identity = save_and_load(world.plan(*make_edits()))
    state = world.store.read()
    assert state is not None
    world.store = MemoryStore()
    world.store.write(State("made-anew", 1, state.cluster_id, state.resources))
    problem = catch_refusal(world, plan, identity)
    assert (problem.exit_code, list_error_codes(problem)) == (ExitCode.STALE, ["other-lineage"])


def test_plan_from_before_first_state_is_refused() -> None:
    world = World()
    plan = world.plan(small_topic("a"))
    world.apply(small_topic("b"))
    assert list_error_codes(catch_refusal(world, plan)) == ["other-lineage"]


def test_plan_or_state_of_another_cluster_is_refused() -> None:
    world = make_world()
    plan = world.plan(*make_edits())
    with pytest.raises(KdeclareError) as refused:
        validate_cluster_id(plan.cluster.id, "another", "here")
    assert (refused.value.exit_code, list_error_codes(refused.value)) == (ExitCode.ERROR, ["other-cluster"])
    elsewhere = World(MemoryCluster(cluster_id="another"), store=world.store)
    with pytest.raises(KdeclareError) as refused:
        elsewhere.plan(*make_edits())
    assert (refused.value.exit_code, list_error_codes(refused.value)) == (ExitCode.ERROR, ["other-cluster"])
    foreign = replace(plan, cluster=replace(plan.cluster, id="another"))
    assert list_error_codes(catch_refusal(world, foreign)) == ["other-cluster"]


def test_saved_plan_is_applied_only_once() -> None:
    world = make_world()
    plan, identity = save_and_load(world.plan(*make_edits()))
    world.run(plan, identity=identity)
    problem = catch_refusal(world, plan, identity)
    assert (problem.exit_code, list_error_codes(problem)) == (ExitCode.STALE, ["already-applied"])
    assert world.store.runs()[-1] in get_detail(problem.diagnostics[0])


def test_first_saved_plan_is_applied_only_once() -> None:
    """The first run creates the state, so the state has a different lineage than the plan."""
    world = World()
    plan, identity = save_and_load(world.plan(topic("a", partitions=1)))
    assert world.run(plan, identity=identity).complete
    problem = catch_refusal(world, plan, identity)
    assert (problem.exit_code, list_error_codes(problem)) == (ExitCode.STALE, ["already-applied"])


def test_repeated_drift_has_new_plan_id() -> None:
    """The run corrected only the cluster, so nothing else in the state shows it."""
    world = make_world()
    ids = []
    for _ in range(3):
        world.set("a", retention_ms="9")
        plan, identity = save_and_load(world.plan(*make_applied()))
        assert get_exit_code(world.run(plan, identity=identity)) is ExitCode.OK
        assert world.overrides("a") == {"retention.ms": "1"}
        assert list_error_codes(catch_refusal(world, plan, identity)) == ["already-applied"]
        ids.append(identity)
    assert len(set(ids)) == 3


def test_run_without_effect_leaves_state_unchanged() -> None:
    world = make_world()
    before = world.store.read()
    world.run(world.plan(*make_applied()))
    assert world.store.read() == before
    world.set("a", retention_ms="9")
    world.cluster.faults.fail(REFUSED)
    world.run(world.plan(*make_applied()))
    assert world.store.read() == before


def test_saved_plan_without_operations_is_applied_only_once() -> None:
    world = World()
    world.apply(small_topic("a"))
    other = World(world.cluster)
    plan, identity = save_and_load(other.plan(small_topic("a")))
    assert plan.ownership
    assert not plan.operations
    other.run(plan, identity=identity)
    assert catch_refusal(other, plan, identity).exit_code is ExitCode.STALE


def test_saved_plan_without_effect_can_be_applied_again() -> None:
    world = make_world()
    plan, identity = save_and_load(world.plan(*make_edits()))
    world.cluster.faults.fail(REFUSED)
    assert get_exit_code(world.run(plan, identity=identity)) is ExitCode.PARTIAL
    assert get_exit_code(world.run(plan, identity=identity)) is ExitCode.OK


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ('"value":"2"', '"value":"3"', "plan-tampered"),
        ('"format_version": "2.0"', '"format_version": "3.0"', "plan-format-version"),
    ],
)
def test_modified_or_unsupported_plan_file_is_refused(before: str, after: str, code: str) -> None:
    text, _ = render_plan_file(make_world().plan(*make_edits()), None)
    assert before in text
    with pytest.raises(KdeclareError) as refused:
        parse_plan(text.replace(before, after, 1), "it.plan")
    assert (refused.value.exit_code, list_error_codes(refused.value)) == (ExitCode.ERROR, [code])


def test_plan_id_is_computed_from_content() -> None:
    plan, identity = save_and_load(make_world().plan(*make_edits()))
    assert identity == compute_plan_id(plan)


# --skip-stale


def test_skip_stale_skips_stale_operations_and_dependents() -> None:
    world = World()
    world.apply(growing_topic("t", grown=False), small_topic("a", retention_ms="1"))
    plan = world.plan(growing_topic("t", grown=True), small_topic("a", retention_ms="2"))
    increase, *chain = (op for op in plan.operations if op.resource.name == "t")
    world.cluster.elsewhere().create_partitions([NewPartitions("t", 3)])
    result = world.run(plan, skip_stale=True)
    assert get_exit_code(result) is ExitCode.PARTIAL
    assert result.results[increase.id].status is Status.STALE
    assert [result.results[op.id].status for op in chain] == [Status.SKIPPED, Status.SKIPPED]
    assert [result.results[op.id].cause for op in chain] == [increase.id, chain[0].id]
    assert world.overrides("a") == {"retention.ms": "2"}
    assert world.owned()["Topic/t"]["partitions"] == 2  # as before: nothing of it was applied


def test_skip_stale_skips_resource_with_changed_ownership() -> None:
    world = make_world()
    plan = world.plan(*make_edits())
    state = world.store.read()
    assert state is not None
    record = protect_record("Topic", state.resources["Topic/a"])
    assert record is not None
    world.store.write(
        replace(state, serial=state.serial + 1, resources={**state.resources, "Topic/a": record})
    )
    result = world.run(plan, skip_stale=True)
    assert get_exit_code(result) is ExitCode.PARTIAL
    assert world.overrides("a") == {"retention.ms": "1"}
    assert world.overrides("b") == {"retention.ms": "2"}
    assert world.owned()["Topic/a"] == dump_record(record)


def test_skip_stale_adopts_nothing_with_changed_ownership() -> None:
    world = make_world()
    World(world.cluster).apply(small_topic("c"))
    plan = world.plan(*make_edits(), small_topic("c"))  # for c, only ownership is taken
    state = world.store.read()
    assert state is not None
    record = TopicRecord(preventDestroy=True)
    world.store.write(
        replace(state, serial=state.serial + 1, resources={**state.resources, "Topic/c": record})
    )
    assert catch_refusal(world, plan).exit_code is ExitCode.STALE
    result = world.run(plan, skip_stale=True)
    assert get_exit_code(result) is ExitCode.PARTIAL
    assert [d.resource for d in result.diagnostics] == ["Topic/c"]
    assert world.owned()["Topic/c"] == dump_record(record)


def test_skip_stale_skips_cleanup_of_skipped_operations() -> None:
    """Another client has begun the same with the same throttle: none of its entries is removed."""
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2]])
    plan = world.plan(*kept, reassignment(("t-0", [3, 4]), throttle=1000))
    for entity, values in build_rates(1000, 1, 2, 3, 4).items():
        set_configs(world, entity, values)
    set_configs(world, "TOPIC/t", {LEADERS: "0:1,0:2", FOLLOWERS: "0:3,0:4"})
    theirs = list_throttles(world.cluster)
    world.cluster.calls.clear()
    run = world.run(plan, skip_stale=True)
    assert {op.verb: run.results[op.id].status for op in plan.operations} == {
        "throttle.set": Status.STALE,
        "partitions.reassign": Status.SKIPPED,
        "leaders.elect": Status.SKIPPED,
        "throttle.clear": Status.SKIPPED,
    }
    assert world.cluster.requests() == []
    assert list_throttles(world.cluster) == theirs
    assert not world.pending_cleanup


def test_skip_stale_runs_cleanup_of_executed_operations() -> None:
    world = MovingWorld()
    kept = create_topics(world, t=[[1, 2]])
    plan = world.plan(*kept, reassignment(("t-0", [3, 4]), throttle=1000))
    move_as_other_client(world, "t-0", [1, 5])
    run = world.run(plan, skip_stale=True)
    assert {op.verb: run.results[op.id].status for op in plan.operations} == {
        "throttle.set": Status.DONE,
        "partitions.reassign": Status.STALE,
        "leaders.elect": Status.SKIPPED,
        "throttle.clear": Status.DONE,
    }
    assert list_throttles(world.cluster) == {}
    assert not world.pending_cleanup


# Changes detected during the run.


def test_change_during_run_fails_only_its_operation() -> None:
    world = World()
    world.apply(growing_topic("t", grown=False), growing_topic("u", grown=False))
    plan = world.plan(growing_topic("t", grown=True), growing_topic("u", grown=True))

    def meddle(other: MemoryCluster) -> None:
        other.set_overrides(topic_resource("t"), {"min.insync.replicas": "3"})

    world.cluster.faults.run_before(meddle, method="reassign")
    result = world.run(plan)
    assert get_exit_code(result) is ExitCode.PARTIAL
    late = {op.resource.name: op.id for op in plan.operations if op.verb == "configs.alter"}
    assert result.results[late["t"]].status is Status.STALE
    assert {s for id_, s in list_statuses(result).items() if id_ != late["t"]} == {Status.DONE}
    assert world.overrides("t") == {"min.insync.replicas": "3"}
    assert world.overrides("u") == {"min.insync.replicas": "2"}
    owned = world.owned()["Topic/t"]
    assert owned["replicationFactor"] == 3  # what was done is owned, and what was refused is as before
    assert owned["configs"]["min.insync.replicas"] == {"value": "1"}


def test_topic_deleted_during_run_fails_alone() -> None:
    world = make_world()
    plan = world.plan(*make_edits())
    world.cluster.faults.run_before(lambda other: other.delete_topics({"a": None}), method="alter_configs")
    result = world.run(plan)
    assert get_exit_code(result) is ExitCode.PARTIAL
    failed, done = result.results.values()
    assert (failed.status, failed.error) == (Status.FAILED, "UNKNOWN_TOPIC_OR_PARTITION")
    assert done.status is Status.DONE


# Failures during the run.


def test_failed_operation_skips_only_dependents_with_cause() -> None:
    world = World()
    before = [
        growing_topic("t", grown=False),
        growing_topic("u", grown=False),
        small_topic("a", retention_ms="1"),
    ]
    world.apply(*before)
    plan = world.plan(
        growing_topic("t", grown=True), growing_topic("u", grown=True), small_topic("a", retention_ms="2")
    )
    increase, *chain = (op for op in plan.operations if op.resource.name == "t")
    world.cluster.faults.fail(REFUSED, item="t", method="create_partitions")
    result = world.run(plan)
    assert get_exit_code(result) is ExitCode.PARTIAL
    failed = result.results[increase.id]
    assert (failed.status, failed.error, failed.message) == (
        Status.FAILED,
        "INVALID_REQUEST",
        "Not on my cluster.",
    )
    skipped = [result.results[op.id] for op in chain]
    assert [(r.status, r.cause) for r in skipped] == [(Status.SKIPPED, increase.id)] * 2
    others = {result.results[op.id].status for op in plan.operations if op.resource.name != "t"}
    assert others == {Status.DONE}
    again = world.plan(
        growing_topic("t", grown=True), growing_topic("u", grown=True), small_topic("a", retention_ms="2")
    )
    assert [str(c.id) for c in again.changes] == ["Topic/t"]
    assert world.run(again).complete


def test_fail_fast_starts_no_further_operations() -> None:
    world = make_world()
    world.apply(
        small_topic("a", retention_ms="1"),
        small_topic("b", retention_ms="1"),
        growing_topic("t", grown=False),
    )
    plan = world.plan(
        small_topic("a", retention_ms="2"), small_topic("b", retention_ms="1"), growing_topic("t", grown=True)
    )
    world.cluster.calls.clear()
    world.cluster.faults.fail(REFUSED, item="TOPIC/a")
    result = world.run(plan, fail_fast=True)
    assert get_exit_code(result) is ExitCode.PARTIAL
    by_verb = {op.verb: result.results[op.id].status for op in plan.operations if op.resource.name == "t"}
    # The only worker is busy with the failing request, so no other operation has begun, even if it was ready.
    assert by_verb == dict.fromkeys(
        ("partitions.increase", "partitions.reassign", "configs.alter"), Status.INTERRUPTED
    )
    assert [call.method for call in world.cluster.requests()] == ["alter_configs"]
    assert not result.interrupted


def test_interrupted_run_ends_cleanly_and_can_continue() -> None:
    world = World()
    world.apply(growing_topic("t", grown=False))
    plan = world.plan(growing_topic("t", grown=True))
    world.cluster.faults.run_before(lambda _: world.stop.set(), method="create_partitions")
    result = world.run(plan)
    assert get_exit_code(result) is ExitCode.INTERRUPTED
    assert list(list_statuses(result).values()) == [Status.DONE, Status.INTERRUPTED, Status.INTERRUPTED]
    world.stop.clear()
    assert world.apply(growing_topic("t", grown=True)).complete
    assert not world.plan(growing_topic("t", grown=True)).has_changes


def test_retriable_faults_are_retried_only_for_failed_items() -> None:
    memory = MemoryCluster()
    world = World(memory)
    world.apply(small_topic("a", retention_ms="1"), small_topic("b", retention_ms="1"))
    waits: list[float] = []
    world.cluster = cast(MemoryCluster, RetryingCluster(memory, RetryPolicy(sleep=waits.append)))
    plan = world.plan(*make_edits())
    memory.calls.clear()
    memory.faults.fail(AGAIN, item="TOPIC/a", nth=1)
    memory.faults.fail(AGAIN, item="TOPIC/a", nth=2)
    assert world.run(plan).complete
    assert [c.items for c in memory.requests()] == [("TOPIC/a", "TOPIC/b"), ("TOPIC/a",), ("TOPIC/a",)]
    assert len(waits) == 2


def test_persistent_retriable_fault_fails_only_its_item() -> None:
    memory = MemoryCluster()
    world = World(memory)
    world.apply(small_topic("a", retention_ms="1"), small_topic("b", retention_ms="1"))
    world.cluster = cast(
        MemoryCluster, RetryingCluster(memory, RetryPolicy(attempts=3, sleep=lambda _: None))
    )
    plan = world.plan(*make_edits())
    memory.faults.fail(AGAIN, item="TOPIC/a", nth=None, method="alter_configs")
    result = world.run(plan)
    assert get_exit_code(result) is ExitCode.PARTIAL
    failed, done = result.results.values()
    assert (failed.status, failed.error) == (Status.FAILED, "NOT_CONTROLLER")
    assert done.status is Status.DONE


QUOTA = Fault("THROTTLING_QUOTA_EXCEEDED", "the quota is used up", FaultKind.RETRIABLE, 0.5)


def test_exceeded_quota_fails_operation_with_hint() -> None:
    memory = MemoryCluster()
    world = World(memory)
    waits: list[float] = []
    world.cluster = cast(MemoryCluster, RetryingCluster(memory, RetryPolicy(sleep=waits.append)))
    plan = world.plan(small_topic("a"), small_topic("b"))
    memory.faults.fail(QUOTA, item="a", nth=None, method="create_topics")
    result = world.run(plan)
    assert get_exit_code(result) is ExitCode.PARTIAL
    failed, done = result.results.values()
    assert (failed.status, failed.error) == (Status.FAILED, "THROTTLING_QUOTA_EXCEEDED")
    assert failed.message.startswith("the quota is used up. ")
    assert "request a higher controller_mutation_rate" in failed.message
    assert done.status is Status.DONE
    assert min(waits) >= 0.5
    assert 290 < sum(waits) <= 300


def test_quota_exceeded_in_preflight_is_reported_with_hint() -> None:
    world = World()
    world.cluster.faults.fail(QUOTA, item="a", nth=None, method="create_topics")
    plan = world.plan(small_topic("a"))
    assert plan_outcome(plan).exit_code is ExitCode.ERROR
    (diagnostic,) = [item for item in plan.diagnostics if item.is_error]
    assert (diagnostic.code, diagnostic.summary) == ("quota-exceeded", "Mutation quota exceeded")
    assert "--no-preflight" in diagnostic.hint
    assert "controller_mutation_rate" in diagnostic.hint


def test_cluster_lost_during_run_is_settled_by_next_apply() -> None:
    world = make_world()
    plan = world.plan(*make_edits())
    gone = Fault("NETWORK_EXCEPTION", "socket disconnected", FaultKind.UNKNOWN)
    world.cluster.faults.time_out(after_effect=True, method="alter_configs", fault=gone)
    # After the request, nothing can be observed either.
    world.cluster.faults.run_before(
        lambda _: world.cluster.faults.fail(gone, nth=None, method="describe"), method="alter_configs"
    )
    result = world.run(plan)
    assert set(list_statuses(result).values()) == {Status.UNKNOWN}
    assert get_exit_code(result) is ExitCode.PARTIAL
    world.cluster.faults.clear()
    assert world.apply(*make_edits()).run_id is None or not world.plan(*make_edits()).has_changes
    assert world.owned()["Topic/a"]["configs"] == {"retention.ms": {"value": "2"}}


def test_partial_failure_records_actual_ownership() -> None:
    world = make_world()
    plan = world.plan(*make_edits(), small_topic("c"), small_topic("d"))
    world.cluster.faults.fail(REFUSED, item="TOPIC/b", method="alter_configs")
    world.cluster.faults.fail(REFUSED, item="d", method="create_topics")
    result = world.run(plan)
    assert get_exit_code(result) is ExitCode.PARTIAL
    owned = world.owned()
    assert owned["Topic/a"]["configs"] == {"retention.ms": {"value": "2"}}
    assert owned["Topic/b"]["configs"] == {"retention.ms": {"value": "1"}}
    assert "Topic/c" in owned
    assert "Topic/d" not in owned
    assert world.apply(*make_edits(), small_topic("c"), small_topic("d")).complete
    assert not world.plan(*make_edits(), small_topic("c"), small_topic("d")).has_changes


def test_failed_second_stage_of_key_owns_first_stage() -> None:
    world = World()
    whole = topic("t", partitions=1, replicationFactor=1, configs={"cleanup.policy": ["delete"]})
    world.apply(whole)
    parts = {"cleanup.policy": {"append": ["compact"], "subtract": ["delete"]}}
    after = topic("t", partitions=1, replicationFactor=1, configs=parts)
    plan = world.plan(after)
    world.cluster.faults.fail(REFUSED, item="TOPIC/t", method="alter_configs", nth=2)
    result = world.run(plan)
    assert list(list_statuses(result).values()) == [Status.DONE, Status.FAILED]
    assert world.overrides("t") == {"cleanup.policy": "delete,compact"}
    assert world.apply(after).complete
    assert world.overrides("t") == {"cleanup.policy": "compact"}
    assert not world.plan(after).has_changes


def test_plan_with_errors_is_never_applied() -> None:
    world = make_world()
    world.apply(topic("t", partitions=3, replicationFactor=1))
    plan = world.plan(topic("t", assignments={0: [1], 1: [77], 2: [1]}), *make_edits())
    assert plan.has_errors
    problem = catch_refusal(world, plan)
    assert (problem.exit_code, list_error_codes(problem)) == (ExitCode.ERROR, ["unknown-broker"])


# Two applies from two copies of a state.


def create_topic_in_other_apply(world: World, *, nth: int, partitions: int = 1) -> None:
    """Let another apply create the topic right before the n-th CreateTopics of this one."""
    new = NewTopic("t", partitions, 1, None, {})
    world.cluster.faults.run_before(lambda other: other.create_topics([new]), nth=nth, method="create_topics")


def test_plan_is_stale_when_another_apply_creates_topic_in_planning() -> None:
    world = World()
    create_topic_in_other_apply(world, nth=1)
    plan = world.plan(topic("t", partitions=1, replicationFactor=1))
    (problem,) = plan.diagnostics
    assert problem.code == "stale"
    assert "Correct the manifest" not in (problem.hint or "")
    assert plan_outcome(plan).exit_code is ExitCode.STALE
    with pytest.raises(KdeclareError) as refused:
        world.run(plan)
    assert refused.value.exit_code is ExitCode.STALE
    assert world.store.runs() == ()
    again = world.apply(topic("t", partitions=1, replicationFactor=1))
    assert again.complete


def test_plan_is_stale_when_brokers_do_not_show_topic_yet() -> None:
    world = World(MemoryCluster(stale_reads=50))
    world.cluster.create_topics([NewTopic("t", 1, 1, None, {})])
    plan = world.plan(topic("t", partitions=1, replicationFactor=1))
    assert [d.code for d in plan.diagnostics] == ["stale"]
    assert plan_outcome(plan).exit_code is ExitCode.STALE


def test_other_topic_created_by_another_apply_during_run_is_stale() -> None:
    world = World()
    create_topic_in_other_apply(world, nth=2, partitions=2)
    run = world.apply(topic("t", partitions=1, replicationFactor=1), topic("u", partitions=1))
    assert run.results["topic.create:Topic/t"].status is Status.STALE
    assert run.results["topic.create:Topic/u"].status is Status.DONE
    outcome = run_outcome(run)
    assert outcome.exit_code is ExitCode.PARTIAL
    assert "1 changed by another client" in outcome.headline
    assert "Topic/t" not in world.owned()


def test_equal_topic_created_by_another_apply_during_run_is_not_deleted_by_rollback() -> None:
    """The run cannot tell the other creation from its own request that a broker repeated."""
    world = World()
    create_topic_in_other_apply(world, nth=2)
    run = world.apply(topic("t", partitions=1, replicationFactor=1))
    assert run.results["topic.create:Topic/t"] == OperationResult("topic.create:Topic/t", Status.DONE)
    assert "Topic/t" in world.owned()
    world.run(world.plan_rollback(run.run_id))
    assert "t" in world.cluster.topics()


@pytest.mark.parametrize("method", ["create_topics", "create_partitions"])
def test_request_that_a_broker_repeated_is_done(method: str) -> None:
    """The first controller stopped after the effect, and the second one answered the repeated request."""
    world = World()
    if method == "create_partitions":
        world.apply(topic("t", partitions=1, replicationFactor=1))
    declared = topic("t", partitions=3, replicationFactor=1)
    plan = world.plan(declared, scope=PlanScope(preflight=False))
    code = {"create_topics": "TOPIC_ALREADY_EXISTS", "create_partitions": "INVALID_PARTITIONS"}[method]
    refused = Fault(code, "The topic already exists, or already has 3 partitions.")
    world.cluster.faults.time_out(after_effect=True, method=method, fault=refused)
    run = world.run(plan)
    assert list_statuses(run) == dict.fromkeys(run.results, Status.DONE)
    assert not world.plan(declared).has_changes


def test_repeated_request_is_done_once_brokers_show_its_effect() -> None:
    world = World(MemoryCluster(stale_reads=3))
    plan = world.plan(topic("t", partitions=3, replicationFactor=1), scope=PlanScope(preflight=False))
    refused = Fault("TOPIC_ALREADY_EXISTS", "Topic 't' already exists.")
    world.cluster.faults.time_out(after_effect=True, method="create_topics", fault=refused)
    assert list(list_statuses(world.run(plan)).values()) == [Status.DONE]


def test_plan_is_stale_when_another_apply_adds_partitions() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    more = NewPartitions("t", 3)
    world.cluster.faults.run_before(
        lambda other: other.create_partitions([more]), nth=1, method="create_partitions"
    )
    plan = world.plan(topic("t", partitions=3, replicationFactor=1))
    assert [d.code for d in plan.diagnostics] == ["stale"]


def test_plan_with_stale_resource_and_error_is_an_error() -> None:
    world = World()
    create_topic_in_other_apply(world, nth=1)
    world.cluster.faults.fail(Fault("INVALID_CONFIG", "Not here."), method="create_topics", item="u")
    both = [topic(name, partitions=1, replicationFactor=1) for name in "tu"]
    plan = world.plan(*both)
    assert {d.code for d in plan.diagnostics} == {"stale", "refused-by-cluster"}
    assert plan_outcome(plan).exit_code is ExitCode.ERROR
