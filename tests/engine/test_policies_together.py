"""Joint evaluation: several resources for one topic, budgets, labels, and plans evaluated again."""

from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.entries import fold_journal
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.prune_denied import evaluate_and_prune
from kdeclare.engine.planning.request import PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.evaluation import ProjectPolicyGate
from kdeclare.policy.interface import PolicyViolation, RequestMetadata
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.report.outcome import run_outcome
from tests.connections import connections_to
from tests.engine.test_policies import (
    RecordingPolicy,
    list_outcomes,
    make_policy,
    make_world,
    make_world_with_topics,
)
from tests.engine.world import World, desired, topic
from tests.jsontypes import dump_args


def require_min_isr_below_factor(request: RequestMetadata) -> None:
    post = request.post_request_state
    if post and int(post.configs.get("min.insync.replicas", "1")) >= post.replication_factor:
        raise PolicyViolation("min.insync.replicas must be below the factor.")


def limit_to_ten_partitions(request: RequestMetadata) -> None:
    if request.action != "DELETE" and (count := request.partitions_of({"team": "blue"})) > 10:
        raise PolicyViolation(f"{count} partitions are more than 10.")


def blue_topic(name: str, partitions: int, **spec: Any) -> DesiredResource:
    return desired("Topic", name, {"team": "blue"}, partitions=partitions, **spec)


# One resource builds on another one's change of the topic.


LOWER = topic("t", configs={"min.insync.replicas": 1})
SHRINK = desired(
    "Reassignment",
    "m",
    partitions=[{"topic": "t", "partition": 0, "replicas": [1, 2]}],
    allowReplicationFactorChange=True,
)
REFUSED = Fault("POLICY_VIOLATION", "no")


@pytest.fixture
def lowering_world() -> World:
    """A factor may be lowered to 2, because min.insync.replicas is lowered to 1 before it."""
    world = make_world()
    world.apply(topic("t", assignments={0: [1, 2, 3]}, configs={"min.insync.replicas": 2}))
    world.policies = (make_policy(require_min_isr_below_factor),)
    return world


def test_change_allowed_by_another_change_runs_with_it(lowering_world: World) -> None:
    plan = lowering_world.plan(LOWER, SHRINK)
    assert [v.outcome for v in plan.verdicts] == ["allow", "allow"]
    assert lowering_world.run(plan).complete
    assert [p.replicas for p in lowering_world.cluster.topics()["t"].partitions] == [(1, 2)]


def test_dependent_change_is_skipped_when_other_fails_in_run(lowering_world: World) -> None:
    plan = lowering_world.plan(LOWER, SHRINK)
    lowering_world.cluster.faults.fail(REFUSED, nth=None, method="alter_configs", item="TOPIC/t")
    run = lowering_world.run(plan)
    assert [r.status for r in run.results.values() if r.status is Status.DONE] == []
    assert [p.replicas for p in lowering_world.cluster.topics()["t"].partitions] == [(1, 2, 3)]


def test_dependent_change_is_blocked_when_other_fails_preflight(lowering_world: World) -> None:
    lowering_world.cluster.faults.fail(REFUSED, nth=None, method="alter_configs", item="TOPIC/t")
    plan = lowering_world.plan(LOWER, SHRINK)
    assert plan.operations == ()
    assert {str(c.id): c.blocked for c in plan.changes} == {
        "Reassignment/m": "policy-violation",
        "Topic/t": "policy-violation",
    }
    assert plan.summary.blocked == 2


def test_dependent_change_is_blocked_when_other_is_denied_later(lowering_world: World) -> None:
    plan = lowering_world.plan(LOWER, SHRINK)

    def deny_min_isr(request: RequestMetadata) -> None:
        if "configs.min.insync.replicas" in request.changed:
            raise PolicyViolation("No.")

    lowering_world.policies = (make_policy(deny_min_isr),)
    run = lowering_world.run(plan)
    assert run.plan.operations == ()
    assert [p.replicas for p in lowering_world.cluster.topics()["t"].partitions] == [(1, 2, 3)]


def test_apply_evaluates_changes_in_plan_order() -> None:
    def require_zero_first(request: RequestMetadata) -> None:
        pre, post = request.pre_request_state, request.post_request_state
        assert pre is not None
        assert post is not None
        before, after = pre.replicas_assignments, post.replicas_assignments
        if tuple(before[0]) != tuple(after[0]) and 3 in before[1]:
            raise PolicyViolation("Partition 0 moves before 1.")

    world = make_world()
    world.apply(topic("t", assignments={0: [1, 2], 1: [1, 2]}))
    world.policies = (make_policy(require_zero_first),)
    moves = [
        desired(
            "Reassignment",
            name,
            partitions=[{"topic": "t", "partition": n, "replicas": [3, 2]}],
            throttle="1MiB/s" if name == "a" else None,
        )
        for n, name in enumerate("ab")
    ]
    plan = world.plan(topic("t", partitions=2), *moves)
    assert [v.outcome for v in plan.verdicts] == ["allow", "allow"]
    assert run_outcome(world.run(plan)).exit_code is ExitCode.OK


def test_denied_factor_change_does_not_block_drain() -> None:
    def deny_factor_change(request: RequestMetadata) -> None:
        if "replicationFactor" in request.changed:
            raise PolicyViolation("The factor stays.")

    world = make_world()
    world.apply(topic("t", assignments={0: [1, 2]}))
    world.policies = (make_policy(deny_factor_change),)
    drain = desired("Reassignment", "off-1", topics=["t"], drain=[1])
    run = world.apply(topic("t", partitions=1, replicationFactor=3), drain)
    assert {str(c.id): c.blocked for c in run.plan.changes} == {
        "Reassignment/off-1": None,
        "Topic/t": "policy-violation",
    }
    assert 1 not in world.cluster.topics()["t"].partitions[0].replicas


def test_blocked_change_is_not_evaluated() -> None:
    recorder = RecordingPolicy()
    world = make_world_with_topics(recorder, topic("t", partitions=3))
    plan = world.plan(topic("t", partitions=2, configs={"retention.ms": 1}))
    assert plan.summary.blocked == 1
    assert recorder.shown == []


def test_reassignment_named_like_topic_is_evaluated() -> None:
    world = make_world_with_topics(RecordingPolicy(), topic("t", assignments={0: [1, 2]}))
    move = desired("Reassignment", "t", partitions=[{"topic": "t", "partition": 0, "replicas": [3, 4]}])
    assert [(v.resource, v.topic) for v in world.plan(topic("t", partitions=1), move).verdicts] == [
        ("Reassignment/t", "t")
    ]


# Budgets.


def test_budget_excludes_denied_changes() -> None:
    world = make_world(
        make_policy(RecordingPolicy(denied=frozenset({"a"}))),
        ConfiguredPolicy("budget", make_policy(limit_to_ten_partitions).policy),
    )
    plan = world.plan(blue_topic("a", 8), blue_topic("b", 8))
    assert {(v.policy, v.resource): v.outcome for v in plan.verdicts if v.policy == "budget"} == {
        ("budget", "Topic/a"): "allow",
        ("budget", "Topic/b"): "allow",
    }
    assert [op.id for op in plan.operations] == ["topic.create:Topic/b"]


def test_budget_is_granted_in_order_until_exhausted() -> None:
    world = make_world()
    world.apply(blue_topic("a", 2))
    world.policies = (make_policy(limit_to_ten_partitions),)
    plan = world.plan(
        blue_topic("a", 2, configs={"retention.ms": 5}),
        blue_topic("b", 12),
        blue_topic("c", 4),
        blue_topic("d", 5),
    )
    assert list_outcomes(plan) == {
        "Topic/a": "allow",
        "Topic/b": "deny",
        "Topic/c": "allow",
        "Topic/d": "deny",
    }
    assert [v.message for v in plan.verdicts if v.is_denial][1] == "11 partitions are more than 10."


@pytest.mark.parametrize("kept", [True, False])
def test_budget_counts_allowed_deletions(kept: bool) -> None:
    world = make_world()
    world.apply(blue_topic("z", 8))
    keeps = RecordingPolicy(denied=frozenset({"z"}) if kept else frozenset())
    world.policies = (make_policy(limit_to_ten_partitions), ConfiguredPolicy("keep", keeps))
    plan = world.plan(blue_topic("a", 8), scope=PlanScope(allow_deletes=True))
    denied = {(v.policy, v.resource) for v in plan.verdicts if v.is_denial}
    assert denied == ({("keep", "Topic/z"), ("test", "Topic/a")} if kept else set())


# Labels, in a plan for some resources only.


ONLY_MOVE = PlanScope(targets=frozenset({ResourceId("Reassignment", "m")}))
MOVE = desired("Reassignment", "m", partitions=[{"topic": "t", "partition": 0, "replicas": [3, 4]}])


def require_team(request: RequestMetadata) -> None:
    if "team" not in request.labels:
        raise PolicyViolation("No team.")


@pytest.mark.parametrize("saved", [False, True])
def test_labels_are_kept_for_targeted_plan(saved: bool) -> None:
    world = make_world()
    world.apply(topic("t", assignments={0: [1, 2]}))
    world.policies = (make_policy(require_team),)
    plan = world.plan(blue_topic("t", 1), MOVE, scope=ONLY_MOVE)
    assert list_outcomes(plan) == {"t": "allow"}
    run = world.run(parse_plan(render_plan_file(plan)[0], "it.plan") if saved else plan)
    assert run_outcome(run).exit_code is ExitCode.OK


def test_plan_without_label_needs_stores_no_labels() -> None:
    world = make_world(make_policy(require_team))
    assert world.plan(blue_topic("t", 1)).labels == {}
    world.apply(blue_topic("t", 1))
    assert world.plan(blue_topic("t", 2)).labels == {}


def test_budget_counts_declared_topics_outside_target_at_apply() -> None:
    world = make_world()
    world.cluster.create_topics([NewTopic("old", 8, 1, None, {})])
    world.policies = (make_policy(limit_to_ten_partitions),)
    scope = PlanScope(targets=frozenset({ResourceId("Topic", "b")}))
    plan = world.plan(blue_topic("old", 8), blue_topic("b", 2), scope=scope)
    assert list_outcomes(plan) == {"Topic/b": "allow"}
    world.cluster.create_partitions([NewPartitions("old", 80, None)])
    assert [v.message for v in world.run(plan).verdicts if v.is_denial] == ["82 partitions are more than 10."]


def test_labels_before_are_last_applied_labels() -> None:
    seen = []
    world = make_world(make_policy(lambda r: seen.append((dict(r.labels_before), dict(r.labels)))))
    world.apply(desired("Topic", "t", {"keyed": "true"}, partitions=1))
    seen.clear()
    world.plan(desired("Topic", "t", {"team": "blue"}, partitions=2))
    world.plan(scope=PlanScope(allow_deletes=True))
    assert seen == [({"keyed": "true"}, {"team": "blue"}), ({"keyed": "true"}, {"keyed": "true"})]


# Evaluated again, on the state at that time.


def test_override_does_not_cover_new_objection() -> None:
    def deny_records(request: RequestMetadata) -> None:
        post = request.post_request_state
        if request.record_count:
            raise PolicyViolation(f"It holds {request.record_count} records.")
        if post and post.num_partitions > 5:
            raise PolicyViolation("More than 5 partitions.")

    world = make_world()
    world.apply(topic("t", partitions=1))
    world.policies = (make_policy(deny_records),)
    plan = world.plan(topic("t", partitions=8), scope=PlanScope(overrides={"test": "agreed"}))
    assert [v.override for v in plan.verdicts] == ["agreed"]
    world.cluster.produce("t", 5)
    run = world.run(plan)
    assert [(v.outcome, v.message) for v in run.verdicts] == [("deny", "It holds 5 records.")]
    assert len(world.cluster.topics()["t"].partitions) == 1


def test_unneeded_override_is_not_recorded() -> None:
    world = make_world(make_policy(RecordingPolicy(denied=frozenset({"t"}))))
    plan = world.plan(topic("t", partitions=1), scope=PlanScope(overrides={"test": "agreed"}))
    world.policies = (make_policy(RecordingPolicy()),)
    run = world.run(plan)
    assert [(v.outcome, v.override) for v in run.verdicts] == [("allow", None)]
    record = fold_journal(run.run_id or "", world.store.entries(run.run_id or ""))
    assert record.start is not None
    assert record.start.overrides == []


def test_stored_plan_with_denied_operations_is_readable() -> None:
    """An election follows all moves, including those denied by then; so does crash recovery."""
    world = make_world_with_topics(RecordingPolicy(), *(topic(n, assignments={0: [1, 2]}) for n in "ab"))
    plan = world.plan(*(topic(n, assignments={0: [2, 1]}) for n in "ab"))
    assert any(op.verb == "leaders.elect" for op in plan.operations)
    world.policies = (make_policy(RecordingPolicy(denied=frozenset({"a"}))),)
    run = world.run(plan)
    assert parse_plan(world.store.read_plan_text(run.run_id or ""), "stored") == run.plan
    leaders = {name: found.partitions[0].leader for name, found in world.cluster.topics().items()}
    assert leaders == {"a": 1, "b": 2}
    world.policies = (make_policy(RecordingPolicy(denied=frozenset({"b"}))),)
    back = world.run(world.plan_rollback())
    assert (
        parse_plan(world.store.read_plan_text(back.run_id or ""), "stored") == back.plan
        if back.run_id
        else True
    )


def test_thousand_batches_can_be_denied() -> None:
    world = make_world()
    world.apply(topic("a", assignments={n: [1, 2] for n in range(1200)}), topic("b", assignments={0: [1, 2]}))
    drain = desired("Reassignment", "off-1", topics=["a", "b"], drain=[1], batchSize=1)
    plan = world.plan(topic("a", partitions=1200), topic("b", partitions=1), drain)
    connections = connections_to(world.cluster)
    state = world.store.read()
    assert state is not None
    left = evaluate_and_prune(
        plan,
        connections,
        ProjectPolicyGate((make_policy(RecordingPolicy(denied=frozenset("a"))),)),
        state.resources,
        lambda _: None,
    )
    assert {op.verb for op in left.operations} == {"partitions.reassign", "leaders.elect"}
    assert [list(dump_args(op)["partitions"]) for op in left.operations] == [
        ["b-0"],
        ["b-0"],
    ]
    none = evaluate_and_prune(
        plan,
        connections,
        ProjectPolicyGate((make_policy(RecordingPolicy(denied=frozenset("ab"))),)),
        state.resources,
        lambda _: None,
    )
    assert none.operations == ()


@pytest.mark.parametrize("configs", [{}, {"retention.ms": 5}])
def test_move_by_another_resource_leaves_no_dangling_edges(configs: dict[str, int]) -> None:
    world = make_world(make_policy(RecordingPolicy()))
    world.apply(topic("t", assignments={0: [1, 2]}))
    drain = desired("Reassignment", "off-1", topics=["t"], drain=[1])
    wider = topic("t", replicationFactor=3, configs=configs)
    plan = world.plan(wider, drain)
    assert "moved-by-another" in {d.code for d in plan.diagnostics}
    assert {need for op in plan.operations for need in op.after} <= {op.id for op in plan.operations}
    assert parse_plan(render_plan_file(plan)[0], "it.plan") == plan
    assert world.run(plan).complete
