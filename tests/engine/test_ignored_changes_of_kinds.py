"""``lifecycle.ignoreChanges`` for kinds other than topics and broker configs (decision 0106)."""

from typing import Any

import pytest

from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, Reason
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.connect.testing.workers import LOCATION, Keystore, MemoryWorkers
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel
from tests.engine import test_client_quotas as quotas
from tests.engine import test_connect_workers as worker_configs
from tests.engine import test_connectors as connectors
from tests.engine import test_schemas as schemas
from tests.engine import test_scram_users as scram_users
from tests.engine.world import World


def list_paths(plan: Plan) -> list[str]:
    return [field.path for change in plan.changes for field in change.fields]


def find_note(plan: Plan) -> str:
    """Return the detail of the diagnostic that counts ignored differences."""
    (note,) = [d.detail for d in plan.diagnostics if d.code == "ignored-changes"]
    return note


def ignoring(*paths: str, **lifecycle: Any) -> dict[str, Any]:
    return {"lifecycle": {"ignoreChanges": list(paths), **lifecycle}}


# Client quotas.

BYTES, FETCHED = quotas.BYTES, quotas.FETCHED


def test_ignored_limit_is_set_once_and_then_left_alone() -> None:
    world = World(adopts=False)
    wanted = quotas.alice_quota(producer_byte_rate=10, consumer_byte_rate=20, **ignoring(f"limits.{BYTES}"))
    world.apply(wanted)
    assert quotas.read_limits(world) == {BYTES: 10, FETCHED: 20}
    quotas.set_limits(world, quotas.ALICE, producer_byte_rate=99, consumer_byte_rate=99)
    plan = world.plan(wanted)
    assert list_paths(plan) == [f"limits.{FETCHED}"]
    assert find_note(plan).endswith(f"ClientQuota/alice (limits.{BYTES}).")
    assert list_paths(world.plan_as_read_back(wanted)) == [f"limits.{FETCHED}"]
    world.run(plan)
    assert quotas.read_limits(world) == {BYTES: 99, FETCHED: 20}
    # What was applied stays in the state, so the next change is a change of the manifests and no drift.
    assert world.owned()["ClientQuota/alice"]["limits"] == {BYTES: 10, FETCHED: 20}
    quotas.set_limits(world, quotas.ALICE, producer_byte_rate=10)
    (change,) = world.plan(quotas.alice_quota(producer_byte_rate=11, consumer_byte_rate=20)).changes
    assert change.reason is Reason.CHANGED


def test_ignored_limit_of_other_client_is_neither_adopted_nor_removed() -> None:
    world = World(adopts=False)
    quotas.set_limits(world, quotas.ALICE, producer_byte_rate=99)
    spec: dict[str, Any] = {"unmanagedLimits": "remove", "consumer_byte_rate": 20}
    wanted = quotas.alice_quota(producer_byte_rate=10, **spec, **ignoring(f"limits.{BYTES}"))
    plan = world.plan(wanted)
    assert (list_paths(plan), plan.changes[0].blocked) == ([f"limits.{FETCHED}"], None)
    world.run(plan)
    assert world.owned()["ClientQuota/alice"]["limits"] == {FETCHED: 20}
    assert world.plan(quotas.alice_quota(**spec, **ignoring(f"limits.{BYTES}"))).changes == ()


# SCRAM users.

SHA_512 = scram_users.SHA_512.value


def test_ignored_password_is_set_at_creation_and_then_left_to_others() -> None:
    world = scram_users.make_world(adopts=False)
    option = ignoring(f"mechanisms.{SHA_512}")
    wanted = scram_users.user(sha256=scram_users.OLD, sha512=scram_users.OLD, **option)
    world.apply(wanted)
    assert scram_users.can_log_in(world, scram_users.OLD)
    scram_users.set_password(world, scram_users.NEW)
    plan = world.plan(wanted)
    assert plan.changes == ()
    assert f"ScramUser/a (mechanisms.{SHA_512})" in find_note(plan)
    # A new password in the manifest is not set either: Kafka does not say which of the two is newer.
    changed = scram_users.user(sha256=scram_users.NEW, sha512=scram_users.OLD, **option)
    world.apply(changed)
    assert scram_users.can_log_in(world, scram_users.NEW)
    assert scram_users.can_log_in(world, scram_users.NEW, scram_users.SHA_256)
    assert set(world.owned()["ScramUser/a"]["mechanisms"]) == {"SCRAM-SHA-256", SHA_512}
    assert list_paths(world.plan(scram_users.user(sha256=scram_users.NEW, sha512=scram_users.OLD))) == [
        f"mechanisms.{SHA_512}"
    ]


def test_ignored_mechanism_that_the_user_does_not_have_is_set() -> None:
    world = scram_users.make_world(adopts=False)
    world.apply(scram_users.user(sha256=scram_users.OLD))
    option = ignoring(f"mechanisms.{SHA_512}", f"mechanisms.{scram_users.SHA_256.value}")
    world.apply(scram_users.user(sha256=scram_users.OLD, sha512=scram_users.OLD, **option))
    assert scram_users.can_log_in(world, scram_users.OLD)


def test_ignored_credential_that_leaves_the_manifest_stays() -> None:
    world = scram_users.make_world(adopts=False)
    world.apply(scram_users.user(sha256=scram_users.OLD, sha512=scram_users.OLD))
    option = ignoring(f"mechanisms.{SHA_512}")
    assert world.plan(scram_users.user(sha256=scram_users.OLD, **option)).changes == ()
    assert list_paths(world.plan(scram_users.user(sha256=scram_users.OLD))) == [f"mechanisms.{SHA_512}"]


# Connectors.


def test_ignored_fields_of_connector_keep_their_live_values() -> None:
    bed = connectors.Bed()
    paths = ("tasksMax", "state", "config.file", "class")
    wanted = connectors.connector(state="RUNNING", **ignoring(*paths))
    created = bed.plan(wanted)
    assert {"tasksMax", "state", "config.file"} <= set(list_paths(created))
    bed.world.run(created)
    config = {**bed.config(), "file": "elsewhere.txt", "tasks.max": "5"}
    bed.other.replace_config("src", config)
    assert bed.plan(wanted).changes == ()
    note = find_note(bed.plan(wanted))
    assert "Connector/src (config.file, tasksMax)" in note
    assert bed.world.plan_as_read_back(wanted).changes == ()
    changed = connectors.connector(
        tasksMax=2, config={"topic": "other", "file": "x.txt"}, state="PAUSED", **ignoring(*paths)
    )
    plan = bed.plan(changed)
    assert list_paths(plan) == ["config.topic"]
    assert bed.world.run(plan).complete
    assert {key: bed.config()[key] for key in ("file", "tasks.max", "topic")} == {
        "file": "elsewhere.txt",
        "tasks.max": "5",
        "topic": "other",
    }
    record = bed.world.owned()["Connector/src"]
    assert (record["config"]["file"], record["config"]["tasks.max"], record["state"]) == (
        "in.txt",
        "1",
        "RUNNING",
    )
    assert set(list_paths(bed.plan(connectors.connector(config={"topic": "other"})))) == {
        "config.file",
        "tasksMax",
    }


def test_ignored_key_that_the_connector_does_not_declare_is_not_removed() -> None:
    bed = connectors.Bed()
    bed.apply(connectors.connector())
    bed.other.replace_config("src", {**bed.config(), "transforms": "mask"})
    assert list_paths(bed.plan(connectors.connector())) == ["config.transforms"]
    assert bed.plan(connectors.connector(**ignoring("config.transforms"))).changes == ()


# Worker configs.


def test_ignored_override_of_workers_is_set_once() -> None:
    workers = MemoryWorkers()
    workers.files = {"/old": Keystore(worker_configs.OLD, "pw"), "/new": Keystore(worker_configs.NEW, "pw")}
    workers.placeholders = {worker_configs.PLACEHOLDER: "pw"}
    world = World(MemoryCluster())
    world.workers[workers.urls] = workers
    path = f"configs.{LOCATION}"
    world.apply(worker_configs.declare_workers(workers, **ignoring(path)))
    changed = worker_configs.declare_workers(workers, "/new", **ignoring(path))
    plan = world.plan(changed)
    assert (plan.changes, plan.ownership) == ((), ())
    assert f"ConnectWorkerConfig/eu ({path})" in find_note(plan)
    assert world.plan_as_read_back(changed).changes == ()
    assert list_paths(world.plan(worker_configs.declare_workers(workers, "/new"))) == [path]


# Schemas.

NEWER = schemas.avro("Order", id="string", price=schemas.LONG)
NEWEST = schemas.avro("Order", id="string", total=schemas.LONG)


def test_ignored_schema_is_registered_once_and_later_versions_stay() -> None:
    world = schemas.World()
    wanted = schemas.schema("order", schemas.ORDER, compatibility="FULL", **ignoring("schema"))
    world.apply(wanted)
    world.register("order", NEWER)
    world.elsewhere.set_level("order", CompatibilityLevel.BACKWARD)
    plan = world.plan(wanted)
    assert list_paths(plan) == ["compatibility"]
    assert "Schema/order (schema.Order.price (field-removed))" in find_note(plan)
    world.run(plan)
    assert world.versions("order") == [1, 2]
    record = world.owned()["Schema/order"]
    assert (record["version"], record["compatibility"]) == (1, "FULL")
    assert world.plan_as_read_back(wanted).changes == ()
    assert (
        world.plan(schemas.schema("order", NEWEST, compatibility="FULL", **ignoring("schema"))).changes == ()
    )


def test_ignored_compatibility_level_stays() -> None:
    world = schemas.World()
    wanted = schemas.schema("order", schemas.ORDER, compatibility="FULL", **ignoring("compatibility"))
    world.apply(wanted)
    world.elsewhere.set_level("order", CompatibilityLevel.NONE)
    assert world.plan(wanted).changes == ()
    assert "Schema/order (compatibility)" in find_note(world.plan(wanted))
    # A level that leaves the manifest is not removed while it is ignored.
    assert world.plan(schemas.schema("order", schemas.ORDER, **ignoring("compatibility"))).changes == ()
    assert list_paths(world.plan(schemas.schema("order", schemas.ORDER))) == ["compatibility"]


def test_reference_to_ignored_schema_follows_the_live_version() -> None:
    world = schemas.World()
    part = schemas.avro("Part", id="string")
    whole = schemas.avro("Whole", part="Part")
    declared = (
        schemas.schema("part", part, **ignoring("schema")),
        schemas.schema("whole", whole, "Part"),
    )
    world.apply(*declared)
    assert world.plan(*declared).changes == ()
    world.register("part", schemas.avro("Part", id="string", more=schemas.LONG))
    plan = world.plan(*declared)
    assert [(c.id.name, c.action) for c in plan.changes] == [("whole", Action.UPDATE)]
    assert world.run(plan).complete
    assert world.plan(*declared).changes == ()


# All kinds.


def declare_problems(kind: str, spec: dict[str, Any], path: str) -> list[str]:
    model = KINDS[kind].spec.model_validate({**spec, **ignoring(path)})
    _, problems = KINDS[kind].parse("x", model)
    return [p.diagnostic.code for p in problems if p.path[:2] == ("lifecycle", "ignoreChanges")]


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("ClientQuota", {"entity": {"user": "a"}}, "limits.producer_rate"),
        ("ScramUser", {"mechanisms": {}}, "mechanisms.SCRAM-SHA-1"),
        ("ScramUser", {"mechanisms": {}}, "password"),
        ("Connector", {"class": "C"}, "config.name"),
        ("Connector", {"class": "C"}, "restartFailed"),
        ("ConnectWorkerConfig", {"connect": "eu"}, "workers"),
        ("Schema", {"schema": '"string"'}, "references"),
    ],
)
def test_unknown_path_is_an_error(kind: str, spec: dict[str, Any], path: str) -> None:
    assert declare_problems(kind, spec, path) == ["unknown-ignored-field"]


def test_ignored_fields_are_part_of_the_stored_body() -> None:
    declared: list[DesiredResource] = [
        quotas.alice_quota(**ignoring(f"limits.{BYTES}")),
        scram_users.user(sha512=scram_users.OLD, **ignoring(f"mechanisms.{SHA_512}")),
        connectors.connector(**ignoring("state")),
        schemas.schema("order", schemas.ORDER, **ignoring("schema")),
    ]
    for item in declared:
        kind: Any = KINDS[item.id.kind]
        assert kind.from_json(kind.to_json(item.id.name, item.body)).ignored == item.body.ignored != ()  # type: ignore[attr-defined]
