"""Configs of groups and client metrics from the manifest to the request: diff, ownership, rollback, drift."""

from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.plans.plan import Plan
from kdeclare.core.policies.policy_subjects import ListedForPolicies
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, Change, FieldOp, Reason, Risk
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_capabilities import Export, ExportRequest, export_manifests
from kdeclare.engine.observation import observe
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.consumer_group.group import GroupMember, GroupType
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.testing.groups import MemoryGroups
from kdeclare.report.outcome import plan_outcome
from tests.connections import connections_to
from tests.engine.world import World, desired, topic

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
G = ConfigResource(ConfigScope.GROUP, "g")
M = ConfigResource(ConfigScope.CLIENT_METRICS, "m")
DELETING = PlanScope(allow_deletes=True, max_deletes=None, allow_empty=True)


def group(name: str = "g", /, **spec: Any) -> DesiredResource:
    return desired("GroupConfig", name, **spec)


def subscription(name: str = "m", /, **spec: Any) -> DesiredResource:
    return desired("ClientMetrics", name, **spec)


def set_by_others(world: World, resource: ConfigResource, values: Mapping[str, str]) -> None:
    world.cluster.set_overrides(resource, {**read(world, resource), **values})


def read(world: World, resource: ConfigResource) -> dict[str, str]:
    return dict(world.cluster.overrides(resource))


def export(world: World, kind: str) -> Export:
    connections = connections_to(world.cluster)
    request = ExportRequest(lambda selections: observe(connections, selections), bool, lambda _: True)
    return export_manifests(KINDS[kind], connections, request)


def get_only_change(plan: Plan) -> Change:
    (change,) = plan.changes
    return change


def test_group_configs_are_set_and_reset_as_those_of_topics() -> None:
    """P-GRP-01."""
    world = World()
    world.apply(group(configs={SESSION: 50000}))
    set_by_others(world, G, {"share.isolation.level": "read_committed"})
    plan = world.plan(group(configs={HEARTBEAT: 6000}))
    (op,) = plan.operations
    assert op.verb == "configs.alter"
    assert dump_arguments(op.args) == {
        "entity_type": "GROUP",
        "entity_name": "g",
        "ops": [
            {"key": HEARTBEAT, "op": "SET", "value": "6000"},
            {"key": SESSION, "op": "DELETE", "value": None},
        ],
    }
    assert plan.unmanaged_configs == {"GroupConfig/g": ("share.isolation.level",)}
    change = get_only_change(plan)
    assert (change.action, change.reason, change.risk) == (Action.UPDATE, Reason.CHANGED, Risk.DISRUPTIVE)
    assert world.run(plan).complete
    requests = world.cluster.requests("alter_configs")[-2:]
    assert [(call.validate_only, call.items) for call in requests] == [
        (True, ("GROUP/g",)),
        (False, ("GROUP/g",)),
    ]
    assert read(world, G) == {HEARTBEAT: "6000", "share.isolation.level": "read_committed"}
    assert not world.plan(group(configs={HEARTBEAT: 6000})).has_changes


def test_limits_of_group_configs_are_checked_before_apply() -> None:
    """P-GRP-02: the brokers know their limits, so the preflight finds them."""
    plan = World().plan(group(configs={SESSION: 6_000_000}))
    (problem,) = [d for d in plan.diagnostics if d.is_error]
    assert "group.consumer.max.session.timeout.ms" in problem.detail
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_subscription_is_created_and_deleted_by_its_keys() -> None:
    """P-CM-01."""
    world = World()
    wanted = subscription(
        metrics=["org.apache.kafka.producer."], match={"client_id": "app-.*"}, interval="30s"
    )
    change = get_only_change(world.plan(wanted))
    assert (change.action, change.reason, change.risk) == (Action.CREATE, Reason.DECLARED, Risk.SAFE)
    assert world.apply(wanted).complete
    assert read(world, M) == {
        "metrics": "org.apache.kafka.producer.",
        "match": "client_id=app-.*",
        "interval.ms": "30000",
    }
    assert not world.plan(wanted).has_changes
    plan = world.plan(scope=DELETING)
    assert get_only_change(plan).action is Action.DELETE
    assert {field.op for field in get_only_change(plan).fields} == {FieldOp.DELETE}
    assert world.run(plan).complete
    assert world.cluster.list_config_resources(ConfigScope.CLIENT_METRICS) == frozenset()


def test_lists_of_subscriptions_are_set_as_a_whole() -> None:
    world = World()
    world.apply(subscription(metrics=["a.", "b."]))
    for metrics in (["a.", "b.", "c."], ["c."], ["d.", "c."]):
        plan = world.plan(subscription(metrics=metrics))
        assert [field.op for field in get_only_change(plan).fields] == [FieldOp.SET]
        assert world.run(plan).complete
        assert read(world, M) == {"metrics": ",".join(metrics)}
    assert not world.plan(subscription(metrics=["c.", "d."])).has_changes, "the order has no meaning"


def test_subscription_keeps_undeclared_fields() -> None:
    world = World()
    set_by_others(world, M, {"interval.ms": "1000"})
    plan = world.plan(subscription(metrics=["*"]))
    assert plan.unmanaged_configs == {"ClientMetrics/m": ("interval.ms",)}
    assert world.run(plan).complete
    assert read(world, M) == {"metrics": "*", "interval.ms": "1000"}
    assert world.apply(subscription(metrics=["*"], unmanagedConfigs="remove")).complete
    assert read(world, M) == {"metrics": "*"}


def test_configs_that_others_set_are_adopted_only_if_allowed() -> None:
    world = World(adopts=False)
    set_by_others(world, G, {SESSION: "50000"})
    wanted = group(configs={SESSION: 60000})
    plan = world.plan(wanted)
    assert [d.code for d in plan.diagnostics] == ["adoption"]
    assert not plan.operations
    assert not world.plan(group(configs={SESSION: 50000})).has_changes
    adopting = group(configs={SESSION: 60000}, lifecycle={"adopt": True})
    assert world.apply(adopting).complete
    assert read(world, G) == {SESSION: "60000"}


def test_rollback_restores_the_earlier_configs() -> None:
    world = World()
    world.apply(group(configs={SESSION: 50000}), subscription(metrics=["a."], interval="1min"))
    world.apply(group(configs={HEARTBEAT: 6000}), subscription(metrics=["b."]))
    assert world.rollback().complete
    assert read(world, G) == {SESSION: "50000"}
    assert read(world, M) == {"metrics": "a.", "interval.ms": "60000"}


def test_changes_by_others_are_drift() -> None:
    world = World()
    wanted = group(configs={SESSION: 50000})
    world.apply(wanted)
    world.cluster.set_overrides(G, {})
    change = get_only_change(world.plan(wanted))
    assert (change.action, change.reason) == (Action.CREATE, Reason.MISSING)
    set_by_others(world, G, {HEARTBEAT: "6000"})
    change = get_only_change(world.plan(wanted))
    assert (change.action, change.reason) == (Action.UPDATE, Reason.DRIFTED)
    assert world.apply(wanted).complete
    assert read(world, G) == {SESSION: "50000", HEARTBEAT: "6000"}
    world.apply(scope=DELETING)
    assert read(world, G) == {HEARTBEAT: "6000"}


def test_resources_of_other_clients_are_counted_as_unmanaged() -> None:
    world = World()
    for name in ("g", "other", "third"):
        set_by_others(world, ConfigResource(ConfigScope.GROUP, name), {SESSION: "50000"})
    set_by_others(world, M, {"metrics": "*"})
    plan = world.plan(group(configs={SESSION: 50000}))
    assert plan.summary.unmanaged == 2, "subscriptions are not read, because none is declared"
    described = [call.items for call in world.cluster.requests("configs")]
    assert described == [("GROUP/g",)], "the configs of other groups are not read"
    world.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", ""), method="config_resources", nth=None)
    assert world.plan(group(configs={SESSION: 50000})).summary.unmanaged == 0


def test_saved_plan_is_stale_after_change_by_others() -> None:
    world = World()
    world.apply(group(configs={SESSION: 50000}))
    plan = world.plan(group(configs={SESSION: 60000}))
    set_by_others(world, G, {SESSION: "47000"})
    with pytest.raises(KdeclareError) as refused:
        world.run(plan)
    assert [d.code for d in refused.value.diagnostics] == ["stale"]
    assert read(world, G) == {SESSION: "47000"}


def test_blanks_around_group_configs_are_removed() -> None:
    """Brokers accept blanks, but the group coordinator then ignores the configs of the group."""
    world = World()
    assert world.apply(group(configs={SESSION: " 50000 "})).complete
    assert read(world, G) == {SESSION: "50000"}


@pytest.mark.parametrize(
    ("item", "resource", "error"),
    [
        (group(configs={SESSION: 50000}), "GROUP/g", "GROUP_AUTHORIZATION_FAILED"),
        (subscription(metrics=["*"]), "CLIENT_METRICS/m", "CLUSTER_AUTHORIZATION_FAILED"),
    ],
    ids=["group", "subscription"],
)
def test_invisible_configs_are_left_unchanged(item: DesiredResource, resource: str, error: str) -> None:
    world = World()
    world.cluster.faults.fail(Fault(error, ""), method="configs", item=resource, nth=None)
    plan = world.plan(item)
    assert [d.code for d in plan.diagnostics] == ["not-visible"]
    assert not plan.operations
    assert plan_outcome(plan).exit_code is ExitCode.DENIED


def hide(world: World, resource: str, error: str = "GROUP_AUTHORIZATION_FAILED") -> None:
    world.cluster.faults.fail(Fault(error, ""), method="configs", item=resource, nth=None)


def test_rollback_refuses_configs_that_it_cannot_see() -> None:
    """An invisible config must not count as unset: the rollback would do nothing and release the group."""
    world = World()
    world.apply(group(configs={SESSION: 50000}))
    hide(world, "GROUP/g")
    with pytest.raises(Fault, match="GROUP_AUTHORIZATION_FAILED"):
        world.rollback()
    assert "GroupConfig/g" in world.owned()
    world.cluster.faults.clear()
    assert world.rollback().complete
    assert read(world, G) == {}


def test_saved_plan_is_refused_if_its_configs_became_invisible() -> None:
    world = World()
    plan = world.plan(group(configs={SESSION: 50000}))
    set_by_others(world, G, {SESSION: "59000"})
    hide(world, "GROUP/g")
    with pytest.raises(Fault, match="GROUP_AUTHORIZATION_FAILED"):
        world.run(plan)
    assert read(world, G) == {SESSION: "59000"}


def test_group_that_brokers_refuse_to_describe_blocks_only_itself() -> None:
    world = World()
    set_by_others(world, ConfigResource(ConfigScope.GROUP, "other"), {SESSION: "50000"})
    hide(world, "GROUP/g", "INVALID_REQUEST")
    hide(world, "GROUP/other", "UNKNOWN_SERVER_ERROR")
    plan = world.plan(group(configs={SESSION: 50000}), topic("t", partitions=1))
    assert [(d.code, d.resource) for d in plan.diagnostics] == [("not-visible", "GroupConfig/g")]
    assert "the brokers refuse to describe g: INVALID_REQUEST" in plan.diagnostics[0].detail
    assert [op.verb for op in plan.operations] == ["topic.create"]


def test_live_groups_cannot_be_listed_for_policies_if_one_is_invisible() -> None:
    world = World()
    for name in ("low", "high"):
        set_by_others(world, ConfigResource(ConfigScope.GROUP, name), {SESSION: "50000"})
    hide(world, "GROUP/low")
    kind = KINDS["GroupConfig"]
    assert isinstance(kind, ListedForPolicies)
    live = observe(connections_to(world.cluster), kind.select_every())
    with pytest.raises(Fault, match="is not permitted to read the configs of low"):
        kind.list_live(live)


@pytest.mark.parametrize("live", ["client_id = app-.*", "client_id=old,client_id=app-.*"])
def test_match_that_means_the_same_is_up_to_date(live: str) -> None:
    world = World(adopts=False)
    set_by_others(world, M, {"metrics": "a.", "match": live})
    wanted = subscription(metrics=["a."], match={"client_id": "app-.*"})
    assert not world.plan(wanted).has_changes
    world.apply(wanted)
    assert not world.plan(wanted).has_changes
    assert read(world, M) == {"metrics": "a.", "match": live}
    other = subscription(metrics=["a."], match={"client_id": "b-.*"})
    assert world.apply(other).complete
    assert read(world, M) == {"metrics": "a.", "match": "client_id=b-.*"}


def test_null_declares_that_a_field_of_a_subscription_is_unset() -> None:
    world = World()
    set_by_others(world, M, {"metrics": "a.", "interval.ms": "1000"})
    assert world.apply(subscription(metrics=["a."], interval=None)).complete
    assert read(world, M) == {"metrics": "a."}
    assert world.plan(subscription(metrics=["a."])).unmanaged_configs == {}


def test_import_declares_every_group_and_subscription() -> None:
    world = World()
    set_by_others(world, G, {SESSION: "50000", "share.auto.offset.reset": "earliest"})
    set_by_others(world, M, {"metrics": "a.,b.", "match": "client_id=app-.*", "interval.ms": "1000"})
    groups, subscriptions = (export(world, kind).manifests for kind in ("GroupConfig", "ClientMetrics"))
    assert groups["g"].endswith(
        "  configs:\n    consumer.session.timeout.ms: 50000\n    share.auto.offset.reset: earliest\n"
    )
    assert subscriptions["m"].endswith(
        'spec:\n  metrics: [a., b.]\n  match:\n    client_id: "app-.*"\n  interval: 1s\n'
    )


def test_import_of_old_brokers_leaves_out_what_they_cannot_list() -> None:
    world = World()
    world.cluster.faults.fail(Fault("UNSUPPORTED_VERSION", ""), method="config_resources")
    exported = export(world, "GroupConfig")
    assert not exported.manifests
    assert [item.why for item in exported.left_out if item.count] == [
        "GroupConfig: these brokers cannot list groups with configs, which requires Kafka 4.1 or later"
    ]


SHARE, STREAMS = "share.isolation.level", "streams.num.standby.replicas"
VALUES = {SESSION: "50000", SHARE: "read_committed", STREAMS: "1"}
MISMATCHES = {
    GroupType.CONSUMER: ("is a consumer group", {SHARE, STREAMS}),
    GroupType.SHARE: ("is a share group", {SESSION, STREAMS}),
    GroupType.STREAMS: ("is a streams group", {SESSION, SHARE}),
    GroupType.CLASSIC: ("uses the classic protocol", {SHARE}),
    GroupType.UNKNOWN: ("", set()),
}


def list_mismatches(plan: Plan) -> list[str]:
    return [d.detail for d in plan.diagnostics if d.code == "group-type-mismatch"]


@pytest.mark.parametrize("type_", GroupType)
@pytest.mark.parametrize("key", VALUES)
def test_key_that_the_type_of_the_group_does_not_use_is_warned_about(type_: GroupType, key: str) -> None:
    world = World()
    world.cluster.add_group("g", type_)
    words, unused = MISMATCHES[type_]
    plan = world.plan(group(configs={key: VALUES[key]}))
    assert plan.has_changes
    expected = f"'{key}' of GroupConfig/g has no effect, because group g {words}."
    assert list_mismatches(plan) == ([expected] if key in unused else [])


def test_active_classic_group_does_not_use_keys_of_other_protocols() -> None:
    world = World()
    world.cluster.add_group("g")
    world.cluster.set_members("g", GroupMember("m", "c", "h"))
    (detail,) = list_mismatches(world.plan(group(configs=VALUES)))
    assert detail.startswith(" and ".join(f"'{key}'" for key in sorted(VALUES)))


def test_types_are_read_only_for_declared_keys_with_a_type() -> None:
    world = World()
    world.cluster.add_group("g", GroupType.SHARE)
    assert list_mismatches(world.plan(group("other", configs=VALUES))) == []
    world.cluster.calls.clear()
    assert list_mismatches(world.plan(group(configs={SESSION: None}), topic("t"))) == []
    assert "list_groups" not in {call.method for call in world.cluster.calls}


def test_groups_that_cannot_be_listed_do_not_block_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise Fault("COORDINATOR_NOT_AVAILABLE", "no coordinator")

    monkeypatch.setattr(MemoryGroups, "list_groups", refuse)
    plan = World().plan(group(configs=VALUES))
    assert plan.has_changes
    assert [d.code for d in plan.diagnostics] == ["group-types-unknown"]
