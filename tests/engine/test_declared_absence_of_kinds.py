"""``lifecycle.state: absent`` for kinds other than topics (decision 0106)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, Reason, Risk
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.testing import world as testing
from kdeclare.testing.world import declare
from tests.engine import test_acls as acls
from tests.engine import test_client_quotas as quotas
from tests.engine import test_connectors as connectors
from tests.engine import test_listed_configs as listed_configs
from tests.engine import test_schemas as schemas
from tests.engine import test_scram_users as scram_users
from tests.engine.world import World, desired


class Example(NamedTuple):
    """One kind.

    make_world: return an empty world without ``--adopt``.
    declare: return a resource that exists. name: its name.
    spec: the smallest spec of the same resource that declares it absent.
    prepare: create the resource as another client.
    exists: return whether the resource exists.
    """

    make_world: Callable[[], testing.World]
    declare: Callable[..., DesiredResource]
    spec: dict[str, Any]
    prepare: Callable[[Any], object]
    exists: Callable[[Any], bool]


def make_connect_world() -> World:
    return World(adopts=False, connect_clusters={"eu": MemoryConnectCluster()})


def get_connect(world: World) -> MemoryConnectCluster:
    cluster = world.connect_clusters["eu"]
    assert isinstance(cluster, MemoryConnectCluster)
    return cluster


def create_connector(world: World) -> None:
    other = get_connect(world).elsewhere()
    other.create_connector("src", {"connector.class": "FileStreamSource", "topic": "t", "file": "f"})
    other.settle()


def has_connector(world: World) -> bool:
    return get_connect(world).elsewhere().describe_connector("src") is not None


def has_subject(world: schemas.World) -> bool:
    return "order" in world.elsewhere.list_subjects()


EXAMPLES = {
    "quota": Example(
        lambda: World(adopts=False),
        lambda **spec: quotas.alice_quota(producer_byte_rate=1, **spec),
        {"entity": {"user": "alice"}},
        lambda world: quotas.set_limits(world, quotas.ALICE, producer_byte_rate=1),
        lambda world: bool(quotas.read_limits(world)),
    ),
    "user": Example(
        lambda: scram_users.make_world(adopts=False),
        lambda **spec: scram_users.user(sha512=scram_users.OLD, **spec),
        {},
        lambda world: scram_users.set_password(world, scram_users.OLD),
        lambda world: bool(scram_users.read(world)),
    ),
    "acl": Example(
        lambda: World(adopts=False),
        lambda **spec: acls.acl("a", **acls.READ_ONLY, **spec),
        {"principal": "User:a", **acls.READ_ONLY},
        lambda world: acls.grant(world, acls.READ_ORDERS),
        lambda world: acls.READ_ORDERS in acls.read(world),
    ),
    "group": Example(
        lambda: World(adopts=False),
        lambda **spec: listed_configs.group(configs={listed_configs.SESSION: "50000"}, **spec),
        {},
        lambda world: listed_configs.set_by_others(
            world, listed_configs.G, {listed_configs.SESSION: "50000"}
        ),
        lambda world: bool(listed_configs.read(world, listed_configs.G)),
    ),
    "metrics": Example(
        lambda: World(adopts=False),
        lambda **spec: listed_configs.subscription(interval="30s", **spec),
        {},
        lambda world: listed_configs.set_by_others(world, listed_configs.M, {"interval.ms": "30000"}),
        lambda world: bool(listed_configs.read(world, listed_configs.M)),
    ),
    "connector": Example(
        make_connect_world,
        lambda **spec: connectors.connector(**spec),
        {"class": "FileStreamSource"},
        create_connector,
        has_connector,
    ),
    "schema": Example(
        lambda: schemas.World(adopts=False),
        lambda **spec: schemas.schema("order", schemas.ORDER, **spec),
        {},
        lambda world: world.register("order", schemas.ORDER),
        has_subject,
    ),
}
PROTECTED = [name for name in EXAMPLES if name not in ("quota", "group", "metrics")]
"""The kinds that have ``preventDestroy``."""

for_all_kinds = pytest.mark.parametrize("name", EXAMPLES)


def declare_absent(example: Example, **lifecycle: Any) -> DesiredResource:
    present = example.declare().id
    return declare(
        present.kind, present.name, {**example.spec, "lifecycle": {"state": "absent", **lifecycle}}
    )


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics if d.is_blocking]


def list_reasons(plan: Plan) -> list[tuple[Action, Reason]]:
    return [(change.action, change.reason) for change in plan.changes]


@for_all_kinds
def test_owned_resource_is_deleted_without_allow_deletes(name: str) -> None:
    example = EXAMPLES[name]
    world = example.make_world()
    world.apply(example.declare())
    assert example.exists(world)
    plan = world.plan(declare_absent(example))
    assert list_reasons(plan) == [(Action.DELETE, Reason.ABSENT)]
    assert plan.changes[0].blocked is None
    assert plan.summary.delete == 1
    result = world.run(plan)
    assert result.complete, result.results
    assert not example.exists(world)
    assert world.owned() == {}
    after = world.plan(declare_absent(example))
    assert (after.changes, after.operations, list_codes(after)) == ((), (), [])


@for_all_kinds
def test_resource_that_does_not_exist_needs_no_change(name: str) -> None:
    example = EXAMPLES[name]
    world = example.make_world()
    plan = world.plan(declare_absent(example))
    assert (plan.changes, plan.operations, list_codes(plan)) == ((), (), [])


@for_all_kinds
def test_resource_of_others_is_deleted_only_if_adoption_is_allowed(name: str) -> None:
    example = EXAMPLES[name]
    world = example.make_world()
    example.prepare(world)
    plan = world.plan(declare_absent(example))
    assert list_reasons(plan) == [(Action.DELETE, Reason.ABSENT)]
    assert (plan.changes[0].blocked, plan.operations) == ("adoption", ())
    assert list_codes(plan) == ["adoption"]
    world.run(plan)
    assert example.exists(world)
    assert world.owned() == {}
    assert world.apply(declare_absent(example, adopt=True)).complete
    assert not example.exists(world)
    example.prepare(world)
    assert world.apply(declare_absent(example), scope=PlanScope(adopt=True)).complete
    assert not example.exists(world)
    assert world.owned() == {}


@for_all_kinds
def test_deletion_counts_for_max_deletes(name: str) -> None:
    example = EXAMPLES[name]
    world = example.make_world()
    none = PlanScope(max_deletes=DeletionLimit.parse("0"))
    world.apply(example.declare())
    plan = world.plan(declare_absent(example), scope=none)
    assert (plan.changes[0].blocked, plan.operations) == ("max-deletes", ())
    world.run(plan)
    assert example.exists(world)


@for_all_kinds
def test_rollback_restores_deleted_resource_and_its_ownership(name: str) -> None:
    example = EXAMPLES[name]
    world = example.make_world()
    world.apply(example.declare())
    before = world.owned()
    assert world.apply(declare_absent(example)).complete
    assert not example.exists(world)
    assert world.rollback().complete
    assert example.exists(world)
    assert world.owned().keys() == before.keys()
    # The manifest still declares the resource as absent, so the next plan deletes it again.
    assert list_reasons(world.plan(declare_absent(example))) == [(Action.DELETE, Reason.ABSENT)]


@pytest.mark.parametrize("name", PROTECTED)
def test_protected_resource_is_not_deleted(name: str) -> None:
    example = EXAMPLES[name]
    world = example.make_world()
    world.apply(example.declare(lifecycle={"preventDestroy": True}))
    plan = world.plan(declare_absent(example))
    assert (plan.changes[0].blocked, plan.operations) == ("prevent-destroy", ())
    (problem,) = [d for d in plan.diagnostics if d.is_blocking]
    assert "first apply its manifest with preventDestroy: false" in str(problem.hint)
    world.run(plan)
    assert world.owned()
    world.apply(example.declare())
    world.apply(declare_absent(example))
    assert not example.exists(world)


@for_all_kinds
def test_plan_of_other_targets_does_not_delete(name: str) -> None:
    example = EXAMPLES[name]
    world = example.make_world()
    world.apply(example.declare())
    other = declare("Topic", "other", {})
    scope = PlanScope(targets=frozenset({other.id}))
    plan = world.plan(declare_absent(example), scope=scope)
    assert Reason.ABSENT not in [change.reason for change in plan.changes]
    assert example.exists(world)


# Details of single kinds.


def test_absent_subject_is_deleted_as_its_manifest_says() -> None:
    world = schemas.World(adopts=False)
    world.apply(schemas.schema("order", schemas.ORDER, onDelete="keep"))
    gone = declare("Schema", "order", {"onDelete": "hard", "lifecycle": {"state": "absent"}})
    plan = world.plan(gone)
    assert [op.verb for op in plan.operations] == ["schema.delete", "schema.purge"]
    assert plan.changes[0].risk is Risk.IRREVERSIBLE
    assert world.run(plan).complete
    assert not has_subject(world)


def test_absent_subject_that_is_kept_is_a_contradiction() -> None:
    kind = KINDS["Schema"]
    spec = kind.spec.model_validate({"onDelete": "keep", "lifecycle": {"state": "absent"}})
    _, problems = kind.parse("order", spec)
    assert [(p.path, p.diagnostic.code) for p in problems] == [(("onDelete",), "contradicting-lifecycle")]


def test_absent_subject_with_several_versions_is_deleted_with_all_of_them() -> None:
    world = schemas.World(adopts=False)
    world.apply(schemas.schema("order", schemas.ORDER))
    world.register("order", schemas.avro("Order", id="string", price=schemas.LONG))
    run = world.apply(declare("Schema", "order", {"lifecycle": {"state": "absent"}}))
    assert run.complete
    assert not has_subject(world)
    assert world.rollback().complete
    assert len(world.versions("order")) == 2


def test_absent_connector_loses_its_offsets_if_its_manifest_says_so() -> None:
    world = make_connect_world()
    world.apply(connectors.connector())
    spec: dict[str, Any] = {
        "class": "FileStreamSource",
        "deleteOffsets": True,
        "lifecycle": {"state": "absent"},
    }
    plan = world.plan(declare("Connector", "src", spec))
    assert [op.verb for op in plan.operations] == [
        "connector.state",
        "connector.offsets.delete",
        "connector.delete",
    ]
    assert plan.changes[0].risk is Risk.IRREVERSIBLE


def test_absent_connector_of_unreachable_cluster_is_blocked_even_if_never_applied() -> None:
    world = make_connect_world()
    fault = Fault(UNREACHABLE, "connection refused")
    for method in ("identify", "list_connectors", "describe_connector"):
        get_connect(world).faults.fail(fault, nth=None, method=method)
    spec: dict[str, Any] = {"class": "FileStreamSource", "connect": "eu", "lifecycle": {"state": "absent"}}
    plan = world.plan(declare("Connector", "src", spec))
    assert list_codes(plan) == ["endpoint-unreachable"]


def test_credential_of_another_client_is_reported_after_the_deletion() -> None:
    world = scram_users.make_world(adopts=False)
    world.apply(scram_users.user(sha512=scram_users.OLD))
    scram_users.set_password(world, scram_users.NEW, mechanism=scram_users.SHA_256)
    absent = declare("ScramUser", "a", {"lifecycle": {"state": "absent"}})
    assert world.apply(absent).complete
    assert set(scram_users.read(world)) == {scram_users.SHA_256}
    # The user still exists, so the declaration is not fulfilled.
    assert list_codes(world.plan(absent)) == ["adoption"]
    adopting = declare("ScramUser", "a", {"lifecycle": {"state": "absent", "adopt": True}})
    assert world.apply(adopting).complete
    assert scram_users.read(world) == {}


def test_adoption_deletes_owned_and_other_settings_together() -> None:
    world = World(adopts=False)
    world.apply(quotas.alice_quota(producer_byte_rate=1))
    quotas.set_limits(world, quotas.ALICE, consumer_byte_rate=5)
    lifecycle: dict[str, Any] = {"state": "absent", "adopt": True}
    plan = world.plan(declare("ClientQuota", "alice", {"entity": {"user": "alice"}, "lifecycle": lifecycle}))
    assert len(plan.changes[0].fields) == 2
    assert world.run(plan).complete
    assert quotas.read_limits(world) == {}
    assert world.rollback().complete
    assert quotas.read_limits(world) == {quotas.BYTES: 1, quotas.FETCHED: 5}
    assert world.owned()["ClientQuota/alice"]["limits"] == {quotas.BYTES: 1}


def test_binding_that_another_acl_declares_is_kept() -> None:
    world = World(adopts=False)
    world.apply(acls.acl("a", **acls.READ_WRITE))
    absent = acls.acl("a", **acls.READ_WRITE, lifecycle={"state": "absent"})
    reader = desired("Acl", "reader", principal="User:a", **acls.READ_ONLY)
    plan = world.plan(absent, reader)
    assert list_reasons(plan) == [(Action.DELETE, Reason.ABSENT)]
    assert world.run(plan).complete
    assert acls.read(world) == {acls.READ_ORDERS}
    assert world.owned().keys() == {"Acl/reader"}


def test_absent_user_needs_no_password() -> None:
    kind = KINDS["ScramUser"]
    _, problems = kind.parse("a", kind.spec.model_validate({"lifecycle": {"state": "absent"}}))
    assert problems == ()
    _, problems = kind.parse("a", kind.spec.model_validate({}))
    assert [p.diagnostic.code for p in problems] == ["no-credentials"]
