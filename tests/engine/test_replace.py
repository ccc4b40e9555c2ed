"""``--replace`` deletes a declared topic and creates it again, guarded like any deletion."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import Action, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.plan_integrity import find_inconsistencies
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action as PolicyAction
from kdeclare.policy.interface import PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.testing.faults import Crash
from tests.engine.world import World, desired, topic

X = ResourceId("Topic", "x")
REPLACE = PlanScope(replacements=frozenset({X}))
BEFORE: dict[str, Any] = {"partitions": 6, "replicationFactor": 2, "configs": {"retention.ms": "5000"}}
AFTER: dict[str, Any] = {"partitions": 2, "replicationFactor": 1, "configs": {"max.message.bytes": "7000"}}


def make_world(cluster: MemoryCluster | None = None, **lifecycle: Any) -> World:
    """Return a world with topic x, which holds records."""
    world = World(cluster or MemoryCluster(), adopts=False)
    world.apply(topic("x", **BEFORE, **({"lifecycle": lifecycle} if lifecycle else {})))
    world.cluster.produce("x", 7)
    return world


def plan_replacement(world: World, *declared: DesiredResource, **options: Any) -> Plan:
    return world.plan(*(declared or (topic("x", **AFTER),)), scope=replace(REPLACE, **options))


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def test_plan_shows_current_and_new_values_and_deletes_first() -> None:
    plan = plan_replacement(make_world())
    (change,) = plan.changes
    assert (change.action, change.reason) == (Action.REPLACE, Reason.REPLACED)
    assert Risk.DESTRUCTIVE in change.risks
    assert [(f.path, f.before, f.after) for f in change.fields] == [
        ("partitions", 6, 2),
        ("replicationFactor", 2, 1),
        ("configs.max.message.bytes", None, "7000"),
        ("configs.retention.ms", "5000", None),
    ]
    deletion, creation = plan.operations
    assert (deletion.verb, creation.verb) == ("topic.delete", "topic.create")
    assert list(creation.needs) == [deletion.id]
    assert (plan.summary.create, plan.summary.delete, plan.summary.update) == (1, 1, 0)
    assert plan_outcome(plan, detailed_exitcode=True).exit_code is ExitCode.CHANGES
    text = plan_text(plan)
    assert text.startswith("Plan for test/default on memory: 1 to replace.")
    assert "± Topic/x  deleted, then created again · destructive" in text
    assert "retention.ms       5000 (5 s) → (unset) (back to the default)" in text


def test_replacement_creates_empty_topic_which_is_owned() -> None:
    world = make_world()
    earlier_id = world.cluster.topics()["x"].topic_id
    run = world.run(plan_replacement(world))
    assert run_outcome(run).exit_code is ExitCode.OK
    created = world.cluster.topics()["x"]
    assert created.topic_id != earlier_id
    assert (len(created.partitions), world.overrides("x")) == (2, {"max.message.bytes": "7000"})
    assert not world.cluster.record_counts(["x"]).get("x")
    owned = world.owned()["Topic/x"]
    assert (owned["topicId"], owned["partitions"]) == (created.topic_id, 2)
    assert not world.plan(topic("x", **AFTER)).changes


def test_topic_that_equals_its_manifest_can_be_replaced() -> None:
    world = make_world()
    plan = plan_replacement(world, topic("x", **BEFORE))
    assert all(field.before == field.after for field in plan.changes[0].fields)
    assert world.run(plan).complete
    assert not world.cluster.record_counts(["x"]).get("x")


def test_saved_plan_can_be_applied_and_forged_plan_is_found() -> None:
    world = make_world()
    plan = parse_plan(render_plan_file(plan_replacement(world))[0], "it.plan")
    (change,) = plan.changes
    shown_as_update = replace(change, action=Action.UPDATE)
    assert list(find_inconsistencies(replace(plan, changes=(shown_as_update,))))
    more = tuple(replace(f, after=9) if f.path == "partitions" else f for f in change.fields)
    assert list(find_inconsistencies(replace(plan, changes=(replace(change, fields=more),))))
    harmless = tuple(replace(f, risk=Risk.SAFE, cause="") for f in change.fields)
    forged = replace(change, fields=harmless, risk=Risk.SAFE)
    assert list(find_inconsistencies(replace(plan, changes=(forged,))))
    assert world.run(plan).complete


@pytest.mark.parametrize("lag", [1, 3, 8])
def test_creation_waits_until_brokers_no_longer_show_deleted_topic(lag: int) -> None:
    world = make_world()
    plan = plan_replacement(world)
    world.cluster.metadata_lag = lag
    run = world.run(plan)
    assert run_outcome(run).exit_code is ExitCode.OK, run.results
    assert len(world.cluster._state.topics["x"].partitions) == 2


def test_creation_that_is_refused_during_deletion_is_repeated() -> None:
    world = make_world()
    plan = plan_replacement(world)
    deleting = Fault("TOPIC_ALREADY_EXISTS", "Topic 'x' is marked for deletion.")
    for nth in (1, 2):
        world.cluster.faults.fail(deleting, method="create_topics", nth=nth)
    assert world.run(plan).complete
    assert len(world.cluster.topics()["x"].partitions) == 2


def test_deletion_that_stays_visible_leaves_topic_to_next_apply() -> None:
    world = make_world()
    plan = plan_replacement(world)
    world.cluster.metadata_lag = math.inf
    run = world.run(plan)
    assert [r.status for r in run.results.values()] == [Status.DONE, Status.STALE]
    assert run_outcome(run).exit_code is ExitCode.PARTIAL
    assert world.clock.monotonic() >= 120
    world.cluster.catch_up()
    world.cluster.metadata_lag = 0
    assert world.owned() == {}
    assert [c.action for c in world.plan(topic("x", **AFTER)).changes] == [Action.CREATE]


@pytest.mark.parametrize("method", ["delete_topics", "create_topics"])
@pytest.mark.parametrize("after_effect", [False, True])
def test_next_apply_finishes_an_interrupted_replacement(method: str, after_effect: bool) -> None:
    world = make_world()
    plan = plan_replacement(world)
    world.cluster.faults.crash(after_effect=after_effect, method=method)
    with pytest.raises(Crash):
        world.run(plan)
    assert world.apply(topic("x", **AFTER), scope=REPLACE).complete
    assert len(world.cluster.topics()["x"].partitions) == 2
    assert not world.plan(topic("x", **AFTER)).changes
    assert world.owned()["Topic/x"]["partitions"] == 2


def test_topic_that_another_client_creates_meanwhile_is_left_unchanged() -> None:
    world = make_world()
    plan = plan_replacement(world)
    other = world.cluster.elsewhere()

    def create_again(_: MemoryCluster) -> None:
        other.create_topics([NewTopic("x", 1, 1, None, {})])

    world.cluster.faults.run_before(create_again, method="create_topics")
    started_at = world.clock.monotonic()
    run = world.run(plan)
    assert [r.status for r in run.results.values()] == [Status.DONE, Status.STALE]
    assert world.clock.monotonic() - started_at < 60
    assert len(world.cluster.topics()["x"].partitions) == 1


def test_deletion_by_id_makes_plan_stale_if_topic_was_replaced_by_others() -> None:
    world = make_world()
    plan = plan_replacement(world)
    world.cluster.delete_topics({"x": None})
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {})])
    with pytest.raises(KdeclareError) as refused:
        world.run(plan)
    assert refused.value.exit_code is ExitCode.STALE
    assert len(world.cluster.topics()["x"].partitions) == 1


def test_protected_topic_is_not_replaced() -> None:
    world = make_world(preventDestroy=True)
    for protected in (True, False):  # the last applied manifest counts, too
        declared = topic("x", **AFTER, lifecycle={"preventDestroy": protected})
        plan = plan_replacement(world, declared)
        assert not plan.operations
        assert plan.changes[0].blocked == "prevent-destroy"
        assert plan_outcome(plan).exit_code is ExitCode.DENIED
    declared = topic("x", **AFTER, lifecycle={"preventDestroy": True})
    assert plan_replacement(make_world(), declared).changes[0].blocked == "prevent-destroy"


def test_unowned_topic_is_replaced_only_if_adoption_is_allowed() -> None:
    world = World(adopts=False)
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {})])
    plan = plan_replacement(world)
    assert (plan.changes[0].blocked, plan.operations) == ("adoption", ())
    assert world.run(plan_replacement(world, adopt=True)).complete
    assert "Topic/x" in world.owned()


def test_recreated_topic_of_others_is_not_replaced_without_adoption() -> None:
    world = make_world()
    world.cluster.delete_topics({"x": None})
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {})])
    assert plan_replacement(world).changes[0].blocked == "adoption"


def test_limit_on_deletions_counts_replacements() -> None:
    world = make_world()
    plan = plan_replacement(world, max_deletes=DeletionLimit(0))
    assert not plan.operations
    assert plan.changes[0].blocked == "max-deletes"
    assert plan.summary.blocked == 1
    assert (plan.summary.create, plan.summary.delete) == (0, 0)


def test_missing_topic_is_created_with_a_warning() -> None:
    plan = plan_replacement(World())
    assert [c.action for c in plan.changes] == [Action.CREATE]
    assert list_codes(plan) == ["nothing-to-replace"]


def test_settings_of_others_are_named_before_they_are_removed() -> None:
    world = make_world()
    world.set("x", segment_bytes="9000000")
    plan = plan_replacement(world)
    (warned,) = plan.diagnostics
    assert warned.code == "unmanaged-removed"
    assert "segment.bytes" in warned.detail
    assert not plan.unmanaged_configs


def test_ignored_fields_are_set_like_at_creation() -> None:
    lifecycle: dict[str, Any] = {"ignoreChanges": ["configs.retention.ms"]}
    world = make_world(**lifecycle)
    world.set("x", retention_ms="1")
    plan = plan_replacement(world, topic("x", **BEFORE, lifecycle=lifecycle))
    assert "ignored-changes" not in list_codes(plan)
    assert world.run(plan).complete
    assert world.overrides("x") == {"retention.ms": "5000"}


@dataclass
class _OnePartPolicy(TopicActionsPolicy):
    """Denies one of the two parts of a replacement, and records what it is asked about."""

    denied: PolicyAction | None = None
    asked: list[tuple[PolicyAction, int | None, int | None, int]] = field(default_factory=list)

    def validate(self, request: RequestMetadata) -> None:
        pre, post = request.pre_request_state, request.post_request_state
        counts = (None if pre is None else pre.num_partitions, None if post is None else post.num_partitions)
        self.asked.append((request.action, *counts, request.partitions_of({"team": "a"})))
        if request.action is self.denied:
            raise PolicyViolation(f"No {request.action}.")


def test_policies_evaluate_the_deletion_and_the_creation() -> None:
    policy = _OnePartPolicy()
    world = World(policies=(ConfiguredPolicy("parts", policy),))
    world.apply(desired("Topic", "x", {"team": "a"}, **BEFORE))
    policy.asked.clear()
    plan = plan_replacement(world, desired("Topic", "x", {"team": "a"}, **AFTER))
    assert policy.asked == [(PolicyAction.DELETE, 6, None, 0), (PolicyAction.CREATE, None, 2, 2)]
    assert world.run(plan).complete


@pytest.mark.parametrize("denied", [PolicyAction.DELETE, PolicyAction.CREATE])
def test_denial_of_one_part_prevents_the_replacement(denied: PolicyAction) -> None:
    world = make_world()
    allowed = plan_replacement(world)
    world.policies = (ConfiguredPolicy("parts", _OnePartPolicy(denied)),)
    plan = plan_replacement(world)
    assert (plan.operations, plan.changes[0].blocked) == ((), "policy-violation")
    assert [v.message for v in plan.verdicts if v.is_denial] == [f"No {denied}."]
    run = world.run(allowed)  # the policies are evaluated again before the first request
    assert (run.results, run_outcome(run).exit_code) == ({}, ExitCode.DENIED)
    assert [v.message for v in run.plan.verdicts if v.is_denial] == [f"No {denied}."]
    assert len(world.cluster.topics()["x"].partitions) == 6


def test_impact_names_the_records_that_go() -> None:
    plan = plan_replacement(make_world(), impact=True)
    lost = next(item for item in plan.observations if item.code == "deleted-records")
    assert (lost.resource, lost.figures["records_total"]) == ("Topic/x", 7)
    assert "7 records" in plan_text(plan)


def test_operations_that_need_the_topic_come_after_its_creation() -> None:
    world = World(connect_clusters={"eu": MemoryConnectCluster()})
    world.apply(topic("x", **BEFORE))
    spec: dict[str, Any] = {"class": "FileStreamSink", "config": {"topics": "x", "file": "out.txt"}}
    sink = desired("Connector", "sink", **spec)
    plan = plan_replacement(world, topic("x", **AFTER), sink)
    verbs = [op.verb for op in plan.operations]
    assert verbs.index("topic.delete") < verbs.index("topic.create") < verbs.index("connector.create")
    assert world.run(plan).complete


def test_wrong_names_are_errors() -> None:
    world = make_world()
    ids = [ResourceId("BrokerConfig", "1"), ResourceId("Topic", "typo")]
    for id_, code in zip(ids, ("cannot-replace", "unknown-target"), strict=True):
        plan = world.plan(topic("x", **BEFORE), scope=PlanScope(replacements=frozenset({id_})))
        assert list_codes(plan) == [code]
        assert plan.has_errors
    scope = replace(REPLACE, targets=frozenset({ResourceId("Topic", "y")}))
    plan = world.plan(topic("x", **BEFORE), topic("y", partitions=1, replicationFactor=1), scope=scope)
    assert list_codes(plan) == ["contradicting-options"]


def test_replicas_of_replaced_topic_cannot_be_moved_in_the_same_plan() -> None:
    world = make_world()
    moves = desired("Reassignment", "moves", partitions=[{"topic": "x", "partition": 0, "replicas": [3, 1]}])
    plan = plan_replacement(world, topic("x", **BEFORE), moves)
    assert "contradiction" in list_codes(plan)


def test_settings_that_brokers_would_refuse_block_the_deletion() -> None:
    world = make_world()
    declared = topic("x", partitions=1, replicationFactor=1, configs={"retention.ms": "-7"})
    plan = plan_replacement(world, declared)
    assert plan.has_errors
    assert "refused-by-cluster" in list_codes(plan)
    assert set(world.cluster.topics()) == {"x"}


def test_topic_with_moving_replicas_is_replaced() -> None:
    world = make_world(MemoryCluster(move_ticks=100, tick_on_poll=False))
    world.cluster.reassign({TopicPartition("x", 0): (3, 2)}, allow_replication_factor_change=False)
    assert world.run(plan_replacement(world)).complete


def test_rollback_keeps_new_topic_and_names_option() -> None:
    world = make_world()
    world.run(plan_replacement(world))
    plan = world.plan_rollback()
    (lost,) = plan.diagnostics
    assert (lost.code, plan.operations) == ("irreversible", ())
    assert "The run replaced Topic/x" in lost.detail
    assert "--recreate-deleted" in lost.hint
    assert world.owned()["Topic/x"]["partitions"] == 2
    assert not world.plan(topic("x", **AFTER)).changes


def test_rollback_with_option_replaces_empty_topic_again() -> None:
    world = make_world()
    world.run(plan_replacement(world))
    plan = world.plan_rollback(recreates_deleted=True)
    assert [c.action for c in plan.changes] == [Action.REPLACE]
    assert [op.verb for op in plan.operations] == ["topic.delete", "topic.create"]
    assert "(unset)" not in plan_text(plan)
    text, _ = render_plan_file(plan)
    run = world.run(parse_plan(text, "undo.plan"))
    assert run_outcome(run).exit_code is ExitCode.OK, run.results
    assert len(world.cluster.topics()["x"].partitions) == 6
    owned = world.owned()["Topic/x"]
    assert (owned["topicId"], owned["partitions"]) == (world.cluster.topics()["x"].topic_id, 6)
    assert not world.plan(topic("x", **BEFORE)).changes


def test_rollback_does_not_delete_records_of_new_topic() -> None:
    world = make_world()
    world.run(plan_replacement(world))
    world.cluster.produce("x", 1)
    plan = world.plan_rollback(recreates_deleted=True)
    assert (plan.operations, sorted(list_codes(plan))) == ((), ["has-records", "irreversible"])
    assert "--allow-data-loss" in plan.diagnostics[-1].hint + plan.diagnostics[0].hint
    forced = world.plan_rollback(recreates_deleted=True, allow_data_loss=True)
    assert world.run(forced).complete
    assert len(world.cluster.topics()["x"].partitions) == 6
