"""Client quotas from the manifest to the request: diff, ownership, adoption, rollback, staleness."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kdeclare.app.plan import CHECKS
from kdeclare.core.diagnostics import KdeclareError, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, Change, FieldOp, Reason, Risk
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_capabilities import (
    ExportRequest,
    export_manifests,
)
from kdeclare.engine.observation import observe
from kdeclare.engine.planning.plan_integrity import find_inconsistencies
from kdeclare.engine.planning.request import PlanScope
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import open_project
from kdeclare.providers.kafka.client_quota.entity import DEFAULT_PAIR, DEFAULT_USER, EntityType, QuotaEntity
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaBody
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome
from kdeclare.report.plan.plan_text import plan_text
from tests.connections import connections_to
from tests.engine.world import World, desired, topic

DELETING = PlanScope(allow_deletes=True, allow_empty=True)
ALICE = QuotaEntity.of({EntityType.USER: "alice"})
BYTES, FETCHED, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


def quota(name: str, entity: Mapping[str, Any], /, **spec: Any) -> DesiredResource:
    limits = {key: spec.pop(key) for key in list(spec) if key.endswith(("_rate", "_percentage"))}
    return desired("ClientQuota", name, entity=entity, limits=limits, **spec)


def alice_quota(**spec: Any) -> DesiredResource:
    return quota("alice", {"user": "alice"}, **spec)


def set_limits(world: World, entity: QuotaEntity, **limits: float | None) -> None:
    """Change limits as another client."""
    assert world.cluster.elsewhere().alter_quotas({entity: limits})[entity] is None


def read_limits(world: World, entity: QuotaEntity = ALICE) -> Mapping[str, float]:
    return world.cluster.quotas([entity]).get(entity, {})


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def get_only_change(plan: Plan) -> Change:
    (change,) = plan.changes
    return change


# Diff and operations.


def test_new_quota_is_validated_and_sent_in_one_request() -> None:
    """P-QUO-01."""
    world = World()
    plan = world.plan(alice_quota(producer_byte_rate="1MiB", consumer_byte_rate="2MiB"))
    (op,) = plan.operations
    assert op.verb == "quota.alter"
    assert dump_arguments(op.args) == {
        "entity": {"user": "alice"},
        "ops": [
            {"key": FETCHED, "op": "SET", "value": 2097152},
            {"key": BYTES, "op": "SET", "value": 1048576},
        ],
        "whole": True,
    }
    change = get_only_change(plan)
    assert (change.action, change.reason, change.risk) == (Action.CREATE, Reason.DECLARED, Risk.DISRUPTIVE)
    assert world.run(plan).complete
    requests = world.cluster.requests("alter_quotas")
    assert [(call.validate_only, len(call.items)) for call in requests] == [(True, 1), (False, 1)]
    assert read_limits(world) == {BYTES: 1048576.0, FETCHED: 2097152.0}
    assert not world.plan(alice_quota(producer_byte_rate="1MiB", consumer_byte_rate="2MiB")).has_changes


def test_undeclared_limit_is_removed_and_unmanaged_limits_stay() -> None:
    """P-QUO-02."""
    world = World()
    world.apply(alice_quota(producer_byte_rate=1, consumer_byte_rate=2))
    set_limits(world, ALICE, request_percentage=50)
    plan = world.plan(alice_quota(producer_byte_rate=1))
    (field,) = get_only_change(plan).fields
    assert (field.path, field.op, field.before, field.after) == (f"limits.{FETCHED}", FieldOp.DELETE, 2, None)
    assert plan.unmanaged_configs == {"ClientQuota/alice": (PERCENT,)}
    assert world.run(plan).complete
    assert read_limits(world) == {BYTES: 1.0, PERCENT: 50.0}


def test_default_user_differs_from_user_named_default() -> None:
    """P-QUO-03."""
    world, named = World(), QuotaEntity.of({EntityType.USER: "<default>"})
    set_limits(world, named, producer_byte_rate=10)
    wanted = quota("everyone", {"user": {"default": True}}, producer_byte_rate=5)
    plan = world.plan(wanted)
    assert get_only_change(plan).action is Action.CREATE
    assert dump_arguments(plan.operations[0].args)["entity"] == {"user": None}
    assert plan.summary.unmanaged == 1
    assert world.run(plan).complete
    assert world.cluster.quotas() == {named: {BYTES: 10.0}, DEFAULT_USER: {BYTES: 5.0}}


def test_entity_key_order_and_number_format_cause_no_changes() -> None:
    """P-QUO-04."""
    world = World(adopts=False)
    pair = QuotaEntity.of({EntityType.CLIENT_ID: "app", EntityType.USER: "a"})
    set_limits(world, pair, request_percentage=200.0)
    plan = world.plan(quota("x", {"user": "a", "clientId": "app"}, request_percentage=200))
    assert not plan.has_changes
    assert plan.unmanaged_configs == {}
    assert world.run(plan).complete
    assert world.owned()["ClientQuota/x"]["limits"] == {PERCENT: 200}


@pytest.mark.parametrize(
    ("stated", "live"), [(2.5, 2.5), ("2.5", 2.5), (2, 2.0), ("1e3", 1000.0), (0.1, 0.1), (2**53, 2.0**53)]
)
def test_limit_values_are_applied_exactly(stated: Any, live: float) -> None:
    world = World()
    assert world.apply(alice_quota(request_percentage=stated)).complete
    assert read_limits(world) == {PERCENT: live}
    assert not world.plan(alice_quota(request_percentage=stated)).has_changes


def test_entity_with_unmanaged_limits_is_updated_and_stays() -> None:
    world = World()
    set_limits(world, ALICE, request_percentage=50)
    plan = world.plan(alice_quota(producer_byte_rate=1))
    assert (get_only_change(plan).action, plan.summary.create, plan.summary.update) == (Action.UPDATE, 0, 1)
    assert world.run(plan).complete
    plan = world.plan(scope=DELETING)
    assert (get_only_change(plan).action, plan.summary.delete, plan.summary.update) == (Action.UPDATE, 0, 1)
    assert world.run(plan).complete
    assert read_limits(world) == {PERCENT: 50.0}
    assert world.owned() == {}


def test_entity_is_created_and_deleted_with_its_limits() -> None:
    world = World()
    plan = world.plan(alice_quota(producer_byte_rate=1))
    assert (plan.summary.create, plan.summary.update) == (1, 0)
    assert world.run(plan).complete
    plan = world.plan(scope=DELETING)
    change = get_only_change(plan)
    assert (change.action, change.reason, change.risk) == (Action.DELETE, Reason.ORPHANED, Risk.SAFE)
    assert plan.summary.delete == 1
    assert world.run(plan).complete
    assert (world.cluster.quotas(), world.owned()) == ({}, {})


def test_rollback_of_created_entity_deletes_it_but_not_limits_of_others() -> None:
    for others in ({}, {"producer_byte_rate": 7}):
        world = World()
        world.apply(alice_quota(producer_byte_rate=1, consumer_byte_rate=2))
        set_limits(world, ALICE, **others)
        plan = world.plan_rollback()
        action = Action.UPDATE if others else Action.DELETE
        assert (get_only_change(plan).action, get_only_change(plan).risk) == (action, Risk.SAFE)
        assert list(find_inconsistencies(plan)) == []
        assert world.run(plan).complete
        assert read_limits(world) == {key: float(value) for key, value in others.items()}


def test_last_limit_that_is_declared_as_null_is_an_update() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1))
    assert get_only_change(world.plan(alice_quota(producer_byte_rate=None))).action is Action.UPDATE


def test_null_limit_removes_limit() -> None:
    world = World()
    wanted = alice_quota(producer_byte_rate=None)
    assert not world.plan(wanted).has_changes
    world.apply(wanted)
    set_limits(world, ALICE, producer_byte_rate=7)
    plan = world.plan(wanted)
    assert get_only_change(plan).reason is Reason.DRIFTED
    assert world.run(plan).complete
    assert read_limits(world) == {}
    assert not world.plan().has_changes


@pytest.mark.parametrize(
    ("before", "after", "risk"),
    [(5, 10, Risk.SAFE), (10, 5, Risk.DISRUPTIVE), (None, 5, Risk.DISRUPTIVE), (5, None, Risk.SAFE)],
)
def test_limit_change_risk(before: int | None, after: int | None, risk: Risk) -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=before))
    plan = world.plan(alice_quota(producer_byte_rate=after))
    assert get_only_change(plan).risk is risk


def test_unmanaged_limits_remove_deletes_unmanaged_limits() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1))
    set_limits(world, ALICE, request_percentage=50)
    plan = world.plan(alice_quota(producer_byte_rate=1, unmanagedLimits="remove"))
    assert plan.unmanaged_configs == {}
    assert world.run(plan).complete
    assert read_limits(world) == {BYTES: 1.0}


@pytest.mark.slow
def test_many_quotas_are_applied_in_few_requests() -> None:
    world = World()
    wanted = [quota(f"q{n}", {"user": f"u{n}"}, producer_byte_rate=n + 1) for n in range(1200)]
    assert world.apply(*wanted).complete
    requests = [call for call in world.cluster.requests("alter_quotas") if not call.validate_only]
    assert len(requests) <= 5
    assert len(world.cluster.quotas()) == 1200
    assert not world.plan(*wanted).has_changes


# Adoption, ownership, orphans, drift.


def test_limit_of_another_client_requires_adoption() -> None:
    world = World(adopts=False)
    set_limits(world, ALICE, producer_byte_rate=10)
    wanted = alice_quota(producer_byte_rate=20, request_percentage=50)
    plan = world.plan(wanted)
    change = get_only_change(plan)
    assert (change.reason, change.blocked, list_codes(plan)) == (Reason.ADOPT, "adoption", ["adoption"])
    assert {f.path: f.reason for f in change.fields} == {
        f"limits.{BYTES}": None,
        f"limits.{PERCENT}": Reason.DECLARED,
    }
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    allowed = world.plan(wanted, scope=PlanScope(adopt=True))
    assert world.run(allowed).complete
    assert read_limits(world) == {BYTES: 20.0, PERCENT: 50.0}


def test_adoption_of_equal_limit_sends_no_request() -> None:
    world = World(adopts=False)
    set_limits(world, ALICE, producer_byte_rate=10)
    world.cluster.calls.clear()
    assert world.apply(alice_quota(producer_byte_rate=10)).complete
    assert world.cluster.requests() == []
    plan = world.plan(alice_quota())
    assert world.run(plan).complete
    assert read_limits(world) == {}


def test_limit_drift_is_detected_and_corrected() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=10))
    set_limits(world, ALICE, producer_byte_rate=11)
    change = get_only_change(world.plan(alice_quota(producer_byte_rate=10)))
    assert (change.reason, change.fields[0].before) == (Reason.DRIFTED, 11)
    set_limits(world, ALICE, producer_byte_rate=None)
    plan = world.plan(alice_quota(producer_byte_rate=10))
    assert (get_only_change(plan).action, get_only_change(plan).reason) == (Action.CREATE, Reason.MISSING)
    assert world.run(plan).complete
    assert read_limits(world) == {BYTES: 10.0}


def test_undeclared_quota_is_orphan_until_deletes_are_allowed() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=10))
    set_limits(world, ALICE, request_percentage=50)
    plan = world.plan()
    assert (get_only_change(plan).action, list_codes(plan)) == (Action.NO_OP, ["orphaned"])
    plan = world.plan(scope=PlanScope(allow_deletes=True))
    assert world.run(plan).complete
    assert read_limits(world) == {PERCENT: 50.0}
    assert world.owned() == {}


def test_orphaned_quota_deleted_by_another_client_is_released() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=10))
    set_limits(world, ALICE, producer_byte_rate=None)
    plan = world.plan()
    assert plan.changes == ()
    world.run(plan)
    assert world.owned() == {}


def test_undeclared_entities_are_counted_and_left_unchanged() -> None:
    world = World()
    others = [QuotaEntity.of({EntityType.USER: "bob", EntityType.CLIENT_ID: None}), DEFAULT_PAIR]
    for entity in others:
        set_limits(world, entity, request_percentage=900)
    world.apply(alice_quota(producer_byte_rate=10))
    assert world.plan(alice_quota(producer_byte_rate=10)).summary.unmanaged == 2
    assert read_limits(world, DEFAULT_PAIR) == {PERCENT: 900.0}


def test_project_without_quotas_reads_no_quotas() -> None:
    world = World()
    set_limits(world, ALICE, producer_byte_rate=10)
    assert world.plan().summary.unmanaged == 0
    assert world.cluster.requests("quotas") == []


def test_quotas_are_awaited_when_metadata_lags() -> None:
    world = World(MemoryCluster(metadata_lag=3))
    wanted = (alice_quota(producer_byte_rate=1), topic("t", partitions=1))
    assert world.apply(*wanted).complete
    world.recover()
    assert not world.plan(*wanted).has_changes


def test_quota_is_independent_of_topic_with_same_name() -> None:
    world = World()
    world.apply(topic("alice", partitions=1))
    plan = world.plan(alice_quota(producer_byte_rate=1), scope=PlanScope(allow_deletes=True))
    assert list_codes(plan) == []
    assert world.run(plan).complete
    assert read_limits(world) == {BYTES: 1.0}


# Names and entities.


def test_two_manifests_for_one_entity_are_contradiction() -> None:
    one = quota("one", {"user": "a", "clientId": "app"}, producer_byte_rate=1)
    other = quota("other", {"clientId": "app", "user": "a"}, consumer_byte_rate=1)
    plan = World().plan(one, other)
    assert list_codes(plan) == ["contradiction"]
    assert "the limits of user 'a' with client id 'app'" in plan.diagnostics[0].detail


def test_manifest_with_changed_entity_is_denied() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1))
    plan = world.plan(quota("alice", {"user": "bob"}, producer_byte_rate=1))
    assert list_codes(plan) == ["entity-changed"]
    assert plan.operations == ()
    assert plan_outcome(plan).exit_code is ExitCode.DENIED


def test_renamed_manifest_keeps_ownership() -> None:
    world = World(adopts=False)
    world.apply(alice_quota(producer_byte_rate=1, consumer_byte_rate=2))
    renamed = quota("alicia", {"user": "alice"}, producer_byte_rate=1, consumer_byte_rate=2)
    world.cluster.calls.clear()
    plan = world.plan(renamed, scope=PlanScope(allow_deletes=True))
    assert list_codes(plan) == ["renamed"]
    assert {c.id.name: c.action for c in plan.changes} == {"alice": Action.FORGET}
    assert world.run(plan).complete
    assert world.cluster.requests() == []
    assert set(world.owned()) == {"ClientQuota/alicia"}
    assert not world.plan(renamed).has_changes


def test_plan_of_single_file_does_not_take_over_quota_of_another_manifest() -> None:
    """The manifest that owns the quota was not read, so it is not known to be renamed."""
    world = World(adopts=False)
    world.apply(alice_quota(producer_byte_rate=10))
    other = quota("other", {"user": "alice"}, producer_byte_rate=1)
    plan = world.plan(other, scope=PlanScope(complete=False))
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert [(c.id.name, bool(c.blocked)) for c in plan.changes] == [("other", True)]
    world.run(plan)
    assert read_limits(world) == {"producer_byte_rate": 10}
    assert set(world.owned()) == {"ClientQuota/alice"}


def test_renamed_and_changed_manifest_takes_ownership_after_apply() -> None:
    world = World(adopts=False)
    world.apply(alice_quota(producer_byte_rate=1, consumer_byte_rate=2))
    renamed = quota("alicia", {"user": "alice"}, producer_byte_rate=5)
    plan = world.plan(renamed, scope=PlanScope(allow_deletes=True))
    assert list_codes(plan) == ["renamed"]
    assert {c.id.name: c.action for c in plan.changes} == {"alice": Action.NO_OP, "alicia": Action.UPDATE}
    refused = Fault("INVALID_REQUEST", "no")
    world.cluster.faults.fail(refused, method="alter_quotas", item="user 'alice'")
    assert not world.run(plan).complete
    assert set(world.owned()) == {"ClientQuota/alice"}
    assert world.apply(renamed, scope=PlanScope(allow_deletes=True)).complete
    assert read_limits(world) == {BYTES: 5.0}
    assert world.apply(renamed, scope=PlanScope(allow_deletes=True)).complete
    assert set(world.owned()) == {"ClientQuota/alicia"}
    assert read_limits(world) == {BYTES: 5.0}
    assert not world.plan(renamed).has_changes


@pytest.mark.parametrize(
    ("entity", "first"),
    [
        ({"user": "alice"}, {EntityType.USER: "alice", EntityType.CLIENT_ID: None}),
        ({"clientId": "app"}, {EntityType.USER: None}),
        ({"clientId": "app"}, {EntityType.USER: None, EntityType.CLIENT_ID: "app"}),
        ({"clientId": {"default": True}}, {EntityType.USER: None, EntityType.CLIENT_ID: None}),
        ({"user": {"default": True}}, {EntityType.USER: None, EntityType.CLIENT_ID: None}),
    ],
)
def test_limit_shadowed_for_all_clients_is_warned_of(
    entity: Mapping[str, Any], first: Mapping[EntityType, str | None]
) -> None:
    world = World()
    set_limits(world, QuotaEntity.of(first), producer_byte_rate=1)
    plan = world.plan(quota("q", entity, producer_byte_rate=10, consumer_byte_rate=10))
    assert [(d.code, d.severity, d.subject) for d in plan.diagnostics] == [
        ("shadowed-limit", Severity.WARNING, BYTES)
    ]
    assert world.run(plan).complete


@pytest.mark.parametrize(
    ("entity", "other"),
    [
        ({"user": "alice"}, {EntityType.USER: None, EntityType.CLIENT_ID: None}),
        ({"user": "alice", "clientId": "app"}, {EntityType.USER: "alice", EntityType.CLIENT_ID: None}),
        ({"user": {"default": True}, "clientId": "app"}, {EntityType.USER: None, EntityType.CLIENT_ID: None}),
        ({"user": "alice"}, {EntityType.CLIENT_ID: "app"}),
    ],
)
def test_limit_shadowed_for_some_clients_is_not_warned_of(
    entity: Mapping[str, Any], other: Mapping[EntityType, str | None]
) -> None:
    world = World()
    set_limits(world, QuotaEntity.of(other), producer_byte_rate=1)
    assert list_codes(world.plan(quota("q", entity, producer_byte_rate=10))) == []


def test_limit_is_not_shadowed_by_limit_removed_in_plan() -> None:
    world = World()
    everyone = quota("everyone", {"user": {"default": True}}, producer_byte_rate=1)
    app = quota("app", {"clientId": "app"}, producer_byte_rate=2)
    assert list_codes(world.plan(everyone, app)) == ["shadowed-limit"]
    world.apply(everyone)
    gone = quota("everyone", {"user": {"default": True}})
    assert list_codes(world.plan(gone, app)) == []


# Apply: errors, staleness, unknown outcomes, rollback.


def test_entity_rejected_by_brokers_blocks_only_itself() -> None:
    world = World()
    world.cluster.faults.fail(
        Fault("INVALID_REQUEST", "no.such.host is not a valid IP or resolvable host."),
        method="alter_quotas",
        item="IP address 'no.such.host'",
    )
    bad = quota("bad", {"ip": "no.such.host"}, connection_creation_rate=10)
    plan = world.plan(bad, alice_quota(producer_byte_rate=1))
    assert [d.resource for d in plan.diagnostics if d.is_blocking] == ["ClientQuota/bad"]


def test_missing_permission_is_named_in_plan() -> None:
    world = World()
    world.cluster.faults.fail(
        Fault("CLUSTER_AUTHORIZATION_FAILED", ""), method="alter_quotas", item="user 'alice'", nth=None
    )
    plan = world.plan(alice_quota(producer_byte_rate=1))
    assert "AlterConfigs on the cluster" in plan_text(plan)


def test_invisible_quotas_block_only_themselves() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1))
    denial = Fault("CLUSTER_AUTHORIZATION_FAILED", "")
    world.cluster.faults.fail(denial, method="quotas", nth=None)
    plan = world.plan(alice_quota(producer_byte_rate=2), topic("t", partitions=1))
    assert [(d.code, d.resource) for d in plan.diagnostics] == [("not-visible", "ClientQuota/alice")]
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    assert world.run(plan).results[plan.operations[0].id].is_good
    plan = world.plan(topic("t", partitions=1), scope=PlanScope(allow_deletes=True))
    assert [(d.code, d.severity) for d in plan.diagnostics] == [("not-visible", Severity.WARNING)]
    assert "ClientQuota/alice" in world.owned()


def test_rollback_refuses_quotas_that_it_cannot_see() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1))
    world.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", ""), method="quotas", nth=None)
    with pytest.raises(Fault, match="reading quotas requires the DescribeConfigs permission"):
        world.rollback()
    assert "ClientQuota/alice" in world.owned()
    assert read_limits_unfaulted(world) == {BYTES: 1.0}


def read_limits_unfaulted(world: World) -> Mapping[str, float]:
    world.cluster.faults.clear()
    return read_limits(world)


def test_plan_is_stale_only_for_changed_limit_keys() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1, consumer_byte_rate=1))
    plan = world.plan(alice_quota(producer_byte_rate=2, consumer_byte_rate=1))
    set_limits(world, ALICE, consumer_byte_rate=9)  # not something that the plan touches
    assert world.run(plan).complete
    plan = world.plan(alice_quota(producer_byte_rate=3, consumer_byte_rate=9))
    set_limits(world, ALICE, producer_byte_rate=4)
    with pytest.raises(KdeclareError) as refused:
        world.run(plan)
    assert [d.code for d in refused.value.diagnostics] == ["stale"]
    assert read_limits(world) == {BYTES: 4.0, FETCHED: 9.0}


@pytest.mark.parametrize("after_effect", [True, False])
def test_timed_out_request_is_settled_by_observation(after_effect: bool) -> None:
    world = World()
    plan = world.plan(alice_quota(producer_byte_rate=1))
    world.cluster.faults.time_out(after_effect=after_effect, method="alter_quotas")
    result = world.run(plan)
    assert result.complete or not after_effect
    world.apply(alice_quota(producer_byte_rate=1))
    assert read_limits(world) == {BYTES: 1.0}


def test_rollback_restores_limits_by_key() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1, request_percentage=5))
    world.apply(alice_quota(producer_byte_rate=2, consumer_byte_rate=3))
    assert read_limits(world) == {BYTES: 2.0, FETCHED: 3.0}
    assert world.rollback().complete
    assert read_limits(world) == {BYTES: 1.0, PERCENT: 5.0}
    assert not world.plan(alice_quota(producer_byte_rate=1, request_percentage=5)).has_changes


def test_rollback_leaves_concurrent_changes_unchanged() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1, consumer_byte_rate=1))
    world.apply(alice_quota(producer_byte_rate=2, consumer_byte_rate=2))
    set_limits(world, ALICE, producer_byte_rate=7)
    plan = world.plan_rollback()
    assert [(d.code, d.subject) for d in plan.diagnostics] == [("conflict", BYTES)]
    world.run(plan)
    assert read_limits(world) == {BYTES: 7.0, FETCHED: 1.0}


def test_rollback_of_first_apply_releases_quota() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1))
    assert world.rollback().complete
    assert read_limits(world) == {}
    assert world.owned() == {}


def test_rollback_of_deletion_restores_limits_and_ownership() -> None:
    world = World()
    world.apply(alice_quota(producer_byte_rate=1))
    world.apply(scope=PlanScope(allow_deletes=True))
    assert world.rollback().complete
    assert read_limits(world) == {BYTES: 1.0}
    assert not world.plan(alice_quota(producer_byte_rate=1)).has_changes
    assert set(world.owned()) == {"ClientQuota/alice"}


def test_infinite_limit_is_replaced_and_rolled_back() -> None:
    world = World()
    set_limits(world, ALICE, request_percentage=float("inf"))
    assert world.apply(alice_quota(request_percentage=5)).complete
    assert world.rollback().complete
    assert read_limits(world) == {PERCENT: float("inf")}


# Import.


HOSTILE = ("a b", "default", "<default>", "CN=x,O='y'", "${env.HOME}", "1e3", "null", "\u202e", "*", "x" * 99)


def test_exported_manifests_cause_no_changes() -> None:
    """The next plan reports "No changes.", whatever the names are."""
    world = World(adopts=False)
    user, client = EntityType.USER, EntityType.CLIENT_ID
    entities = [QuotaEntity.of({type_: name}) for type_ in (user, client) for name in HOSTILE]
    entities += [DEFAULT_USER, DEFAULT_PAIR, QuotaEntity.of({user: "a", client: None})]
    entities += [QuotaEntity.of({user: u, client: c}) for u, c in (("a-client", "b"), ("a", "client-b"))]
    for n, entity in enumerate(entities):
        set_limits(world, entity, producer_byte_rate=2**20 * (n + 1), request_percentage=0.5)
    for entity in (QuotaEntity.of({EntityType.IP: "2001:db8::7"}), QuotaEntity.of({EntityType.IP: None})):
        set_limits(world, entity, connection_creation_rate=10)
        entities.append(entity)
    texts = export_quotas(world)
    assert len(texts) == len(entities)
    found = load_manifests("---\n".join(texts.values()))
    assert {str(item.id) for item in found} == {f"ClientQuota/{name}" for name in texts}
    plan = world.plan(*found)
    assert not plan.has_changes
    assert plan.summary.unmanaged == 0
    assert {item.get_body(ClientQuotaBody).entity for item in found} == set(entities)
    assert len({entity.key for entity in entities}) == len(entities)
    assert [QuotaEntity.parse_key(entity.key) for entity in entities] == entities


def test_exported_manifest_text() -> None:
    world = World()
    pair = QuotaEntity.of({EntityType.USER: "alice", EntityType.CLIENT_ID: None})
    set_limits(world, pair, producer_byte_rate=2**20)
    set_limits(world, ALICE, request_percentage=float("inf"))
    assert export_quotas(world) == {
        "user-alice": """# Limits of user 'alice'.
apiVersion: kdeclare/v1
kind: ClientQuota
metadata:
  name: user-alice
spec:
  entity:
    user: alice
  limits: {}
    # request_percentage is inf, which manifests do not support
""",
        "user-alice-client-default": """# Limits of user 'alice' with the default client id.
apiVersion: kdeclare/v1
kind: ClientQuota
metadata:
  name: user-alice-client-default
spec:
  entity:
    user: alice
    clientId: {default: true}
  limits:
    producer_byte_rate: 1048576  # 1 MiB/s
""",
    }


def export_quotas(world: World) -> Mapping[str, str]:
    connections = connections_to(world.cluster)
    every = ExportRequest(lambda selections: observe(connections, selections), bool, lambda resource: True)
    return export_manifests(KINDS["ClientQuota"], connections, every).manifests


def load_manifests(text: str) -> tuple[DesiredResource, ...]:
    """Load manifests as the command line does."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "it.yaml"
        path.write_text(text)
        found = load_project_manifests(open_project(None, None, {}), [path], KINDS, {}, CHECKS)
    assert found.diagnostics == ()
    return found.desired
