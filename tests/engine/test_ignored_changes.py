"""``lifecycle.ignoreChanges``: fields that are set at creation and left alone afterwards (decision 0087)."""

from typing import Any

import pytest

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, Reason
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.report.outcome import plan_outcome
from tests.engine.world import World, desired, topic

WEEK, DAY = "604800000", "86400000"
BROKER = ConfigResource(ConfigScope.BROKER, "1")
GROUP = ConfigResource(ConfigScope.GROUP, "billing")


@pytest.fixture
def world() -> World:
    """An empty cluster, and no ``--adopt``."""
    return World(adopts=False)


def orders(*ignored: str, **spec: Any) -> Any:
    return topic("orders", lifecycle={"ignoreChanges": list(ignored)}, **spec)


def find_note(plan: Plan) -> Diagnostic | None:
    notes = [d for d in plan.diagnostics if d.code == "ignored-changes"]
    assert len(notes) <= 1
    return notes[0] if notes else None


def list_paths(plan: Plan) -> list[str]:
    return [field.path for change in plan.changes for field in change.fields]


def test_ignored_fields_are_set_at_creation(world: World) -> None:
    wanted = orders("configs.retention.ms", "partitions", partitions=3, configs={"retention.ms": DAY})
    plan = world.plan(wanted)
    assert set(list_paths(plan)) == {"partitions", "configs.retention.ms"}
    assert find_note(plan) is None
    world.run(plan)
    assert world.overrides("orders") == {"retention.ms": DAY}
    assert len(world.cluster.topics()["orders"].partitions) == 3
    assert world.owned()["Topic/orders"]["configs"]["retention.ms"]["value"] == DAY


def test_ignored_config_that_drifted_is_counted_and_not_changed(world: World) -> None:
    spec = {"partitions": 3, "configs": {"retention.ms": DAY, "cleanup.policy": ["compact"]}}
    world.apply(orders("configs.retention.ms", **spec))
    world.set("orders", retention_ms=WEEK)
    plan = world.plan(orders("configs.retention.ms", **spec))
    assert (plan.changes, plan.operations, plan.ownership) == ((), (), ())
    assert plan_outcome(plan).exit_code is ExitCode.OK
    note = find_note(plan)
    assert note is not None
    assert note.severity is Severity.INFO
    assert note.detail == (
        "1 field differs from the manifests and is left unchanged, because lifecycle.ignoreChanges lists it: "
        "Topic/orders (configs.retention.ms)."
    )
    assert world.plan_as_read_back(orders("configs.retention.ms", **spec)).changes == ()


def test_other_fields_are_still_changed(world: World) -> None:
    world.apply(orders("configs.retention.ms", configs={"retention.ms": DAY}))
    wanted = orders(
        "configs.retention.ms", configs={"retention.ms": WEEK, "min.insync.replicas": "1"}, partitions=1
    )
    plan = world.plan(wanted)
    assert list_paths(plan) == ["configs.min.insync.replicas"]
    world.run(plan)
    assert world.overrides("orders") == {"retention.ms": DAY, "min.insync.replicas": "1"}
    assert world.owned()["Topic/orders"]["configs"]["retention.ms"]["value"] == DAY


def test_field_that_is_no_longer_ignored_is_changed_as_manifests_require(world: World) -> None:
    world.apply(orders("configs.retention.ms", configs={"retention.ms": DAY}))
    world.apply(orders("configs.retention.ms", configs={"retention.ms": WEEK, "min.insync.replicas": "1"}))
    (change,) = world.plan(
        topic("orders", configs={"retention.ms": WEEK, "min.insync.replicas": "1"})
    ).changes
    # Live still equals what was applied last, so this is a change of the manifests and not drift.
    assert (change.reason, [f.path for f in change.fields]) == (Reason.CHANGED, ["configs.retention.ms"])


def test_owned_key_that_leaves_the_manifest_stays_owned_while_it_is_ignored(world: World) -> None:
    world.apply(orders(configs={"retention.ms": DAY}))
    assert world.plan(orders("configs.retention.ms")).changes == ()
    world.apply(orders("configs.retention.ms"))
    assert world.owned()["Topic/orders"]["configs"]["retention.ms"]["value"] == DAY
    plan = world.plan(orders())
    assert list_paths(plan) == ["configs.retention.ms"]  # now it is removed, as it would have been before


def test_ignored_key_that_was_never_applied_is_never_owned(world: World) -> None:
    world.cluster.create_topics([NewTopic("orders", 3, 1, None, {"retention.ms": WEEK})])
    wanted = orders("configs.retention.ms", partitions=3, configs={"retention.ms": DAY})
    plan = world.plan(wanted)
    assert plan.changes == ()  # an ignored difference is not an adoption that has to be allowed
    world.run(plan)
    assert world.owned()["Topic/orders"]["configs"] == {}
    plan = world.plan(topic("orders", partitions=3))
    assert plan.changes == ()
    assert world.overrides("orders") == {"retention.ms": WEEK}


def test_ignored_override_survives_removal_of_unmanaged_configs(world: World) -> None:
    spec = {"unmanagedConfigs": "remove", "partitions": 1}
    world.apply(orders("configs.retention.ms", **spec))
    world.set("orders", retention_ms=WEEK, segment_ms=DAY)
    plan = world.plan(orders("configs.retention.ms", **spec))
    assert list_paths(plan) == ["configs.segment.ms"]
    note = find_note(plan)
    assert note is not None
    assert "configs.retention.ms" in note.detail


def test_fewer_partitions_are_no_problem_if_partitions_are_ignored(world: World) -> None:
    world.apply(orders(partitions=6))
    plan = world.plan(orders("partitions", partitions=3))
    assert plan.changes == ()
    note = find_note(plan)
    assert note is not None
    assert "Topic/orders (partitions)" in note.detail
    world.run(plan)
    assert world.owned()["Topic/orders"]["partitions"] == 6
    assert world.plan(orders(partitions=3)).changes[0].blocked == "invalid-partitions"


def test_ignored_replication_factor_moves_no_replicas(world: World) -> None:
    world.apply(orders(partitions=2, replicationFactor=1))
    plan = world.plan(orders("replicationFactor", partitions=4, replicationFactor=3))
    assert list_paths(plan) == ["partitions"]
    world.run(plan)
    assert {len(p.replicas) for p in world.cluster.topics()["orders"].partitions} == {1}
    assert world.owned()["Topic/orders"]["replicationFactor"] == 1


def test_ignored_replication_factor_keeps_placement_strategy(world: World) -> None:
    placed = {"partitions": 2, "placement": {"strategy": "balanced-leaders"}}
    world.apply(orders(replicationFactor=1, **placed))
    plan = world.plan(orders("replicationFactor", replicationFactor=3, **placed))
    assert "replicationFactor" not in list_paths(plan)
    assert all(len(f.after) == 1 for c in plan.changes for f in c.fields if isinstance(f.after, list))


def test_ignored_assignments_and_placement_move_no_replicas(world: World) -> None:
    world.apply(orders(assignments={0: [1], 1: [2]}))
    assert world.plan(orders("assignments", assignments={0: [3], 1: [3]})).changes == ()
    world.apply(orders("assignments", assignments={0: [3], 1: [3]}))
    assert world.owned()["Topic/orders"]["assignments"] == {"0": [1], "1": [2]}
    world.apply(topic("spread", assignments={0: [1], 1: [1], 2: [1]}))
    spec = {"partitions": 3, "replicationFactor": 1, "placement": {"strategy": "balanced-leaders"}}
    assert list_paths(world.plan(topic("spread", **spec)))  # the strategy would move replicas
    ignoring = topic("spread", lifecycle={"ignoreChanges": ["placement"]}, **spec)
    plan = world.plan(ignoring)
    assert [c for c in plan.changes if c.id.name == "spread"] == []


def test_missing_topic_is_created_with_ignored_fields(world: World) -> None:
    wanted = orders("configs.retention.ms", partitions=1, configs={"retention.ms": DAY})
    world.apply(wanted)
    world.cluster.delete_topics({"orders": None})
    (change,) = world.plan(wanted).changes
    assert (change.action, change.reason) == (Action.CREATE, Reason.MISSING)
    assert "configs.retention.ms" in [f.path for f in change.fields]


# Settings of something that always exists are set once.


def test_ignored_broker_config_is_set_once(world: World) -> None:
    wanted = desired(
        "BrokerConfig",
        "1",
        configs={"log.cleaner.threads": "2"},
        lifecycle={"ignoreChanges": ["configs.log.cleaner.threads"]},
    )
    world.apply(wanted)
    assert world.cluster.overrides(BROKER) == {"log.cleaner.threads": "2"}
    world.cluster.set_overrides(BROKER, {"log.cleaner.threads": "4"})
    plan = world.plan(wanted)
    assert plan.changes == ()
    assert find_note(plan) is not None
    world.cluster.set_overrides(
        BROKER, {}
    )  # removed by another client: it was applied once, so it stays unset
    assert world.plan(wanted).changes == ()


def test_ignored_override_of_other_client_needs_no_adoption(world: World) -> None:
    world.cluster.set_overrides(BROKER, {"log.cleaner.threads": "4"})
    spec: dict[str, Any] = {"configs": {"log.cleaner.threads": "2"}}
    assert world.plan(desired("BrokerConfig", "1", **spec)).changes[0].blocked == "adoption"
    spec["lifecycle"] = {"ignoreChanges": ["configs.log.cleaner.threads"]}
    world.apply(desired("BrokerConfig", "1", **spec))
    assert world.cluster.overrides(BROKER) == {"log.cleaner.threads": "4"}
    assert world.owned()["BrokerConfig/1"]["configs"] == {}


def test_ignored_configs_of_groups_and_client_metrics(world: World) -> None:
    group = desired(
        "GroupConfig",
        "billing",
        configs={"consumer.session.timeout.ms": "50000"},
        lifecycle={"ignoreChanges": ["configs.consumer.session.timeout.ms"]},
    )
    metrics = desired(
        "ClientMetrics", "slow", interval="30s", metrics=["*"], lifecycle={"ignoreChanges": ["interval"]}
    )
    world.apply(group, metrics)
    world.cluster.set_overrides(GROUP, {"consumer.session.timeout.ms": "55000"})
    subscription = ConfigResource(ConfigScope.CLIENT_METRICS, "slow")
    world.cluster.set_overrides(subscription, {"interval.ms": "60000", "metrics": "*"})
    plan = world.plan(group, metrics)
    assert plan.changes == ()
    note = find_note(plan)
    assert note is not None
    assert note.detail.startswith("2 fields differ from the manifests and are left unchanged")


def test_resources_out_of_scope_are_not_compared(world: World) -> None:
    wanted = orders("configs.retention.ms", configs={"retention.ms": DAY})
    world.apply(wanted, topic("other"))
    world.set("orders", retention_ms=WEEK)
    scope = PlanScope(targets=frozenset({topic("other").id}))
    assert find_note(world.plan(wanted, topic("other"), scope=scope)) is None


@pytest.mark.parametrize(
    ("kind", "spec", "path", "hint"),
    [
        ("Topic", {}, "configs.retention.mss", "Did you mean 'configs.retention.ms'?"),
        ("Topic", {}, "partition", "Did you mean 'partitions'?"),
        ("Topic", {}, "xyz", "Use assignments, configs.KEY, partitions, placement or replicationFactor."),
        ("Topic", {"assignments": {0: [1]}}, "partitions", "Use assignments or configs.KEY."),
        ("BrokerConfig", {}, "configs.log.cleaner.thread", "Did you mean 'configs.log.cleaner.threads'?"),
        ("ClientMetrics", {"metrics": ["*"]}, "intervall", "Did you mean 'interval'?"),
    ],
)
def test_unknown_path_is_an_error_with_a_suggestion(
    kind: str, spec: dict[str, Any], path: str, hint: str
) -> None:
    model = KINDS[kind].spec.model_validate({**spec, "lifecycle": {"ignoreChanges": [path]}})
    _, problems = KINDS[kind].parse("1", model)
    (problem,) = [p for p in problems if p.diagnostic.code == "unknown-ignored-field"]
    assert problem.path == ("lifecycle", "ignoreChanges", 0)
    assert problem.diagnostic.hint == hint


def test_listener_prefixed_key_can_be_ignored() -> None:
    path = "configs.listener.name.internal.ssl.keystore.location"
    model = KINDS["BrokerConfig"].spec.model_validate({"lifecycle": {"ignoreChanges": [path]}})
    assert KINDS["BrokerConfig"].parse("1", model)[1] == ()
