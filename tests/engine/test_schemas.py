"""Schemas from the manifest to the registry: diff, references, levels, adoption, rollback, deletion."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError, Severity, error
from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.argument_binding import dump_arguments, get_arguments
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import Status
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_capabilities import ExportRequest, export_manifests, list_names
from kdeclare.engine.observation import observe
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.prune_denied import prune_operations
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    Mode,
    SchemaContent,
    SchemaReference,
    SchemaType,
)
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.schema.arguments import DeleteArgs
from kdeclare.providers.schema_registry.testing import (
    APICURIO,
    CONFLUENT,
    KARAPACE,
    Behavior,
    MemoryRegistry,
)
from kdeclare.testing import world
from kdeclare.testing.world import declare
from tests.connections import connections_to
from tests.jsontypes import Json

BEHAVIORS = (CONFLUENT, KARAPACE, APICURIO)
LONG: Json = {"type": "long", "default": 0}
ALLOW_DELETES = PlanScope(allow_deletes=True)


@dataclass
class World(world.World):
    """A project with one registry, which is called main, further registries, and Connect clusters."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    others: dict[str, MemoryRegistry] = field(default_factory=dict)
    connect_clusters: dict[str, MemoryConnectCluster] = field(default_factory=dict)

    def connect(self) -> Connections:
        registries = {"main": self.registry, **self.others}
        clients = RegistryClients(registries, registries.__getitem__)
        return connections_to(MemoryCluster(), None, self.connect_clusters).with_part(clients)

    @property
    def elsewhere(self) -> MemoryRegistry:
        """Another client of the registry."""
        return self.registry.elsewhere()

    def register(self, subject: str, schema: Json, *references: SchemaReference) -> int:
        """Register a schema as another client. Return its version."""
        text = dump_canonical_json(schema)
        version = self.elsewhere.register(subject, SchemaContent(SchemaType.AVRO, text, references)).version
        assert version is not None
        return version

    def versions(self, subject: str) -> list[int]:
        return list(self.elsewhere.list_versions(subject))


def avro(name: str, **fields: Json) -> dict[str, Json]:
    """Return an Avro record. A field is a type, or a mapping with a type and a default."""
    listed: list[Json] = [
        {"name": key, **(value if isinstance(value, dict) else {"type": value})}
        for key, value in fields.items()
    ]
    return {"type": "record", "name": name, "fields": listed}


def schema(name: str, content: Json, /, *references: str, **spec: Any) -> DesiredResource:
    """Declare a schema. references: names of types, each with a subject of the same name in lower case."""
    listed = [{"name": item, "subject": item.rpartition(".")[2].lower()} for item in references]
    more = {"references": listed} if listed else {}
    return declare("Schema", name, {"schema": content, **more, **spec})


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def get_only_change(plan: Plan) -> Change:
    (change,) = plan.changes
    return change


def list_verbs(plan: Plan) -> list[tuple[str, str]]:
    return [(op.verb, op.resource.name) for op in plan.operations]


def list_fields(plan: Plan) -> dict[str, tuple[Any, Any]]:
    return {item.path: (item.before, item.after) for item in get_only_change(plan).fields}


def list_writes(world: World) -> list[tuple[str, ...]]:
    return [(call.method, *call.items) for call in world.registry.writes]


ORDER = avro("Order", id="string")
TEXT = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'
ORDER_WITH_SIZE = avro("Order", id="string", size=LONG)


# The latest version.


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_new_schema_is_registered_unchanged(behavior: Behavior) -> None:
    world = World(registry=MemoryRegistry(behavior))
    desired = schema("order", ORDER, compatibility="FULL")
    plan = world.plan(desired)
    change = get_only_change(plan)
    assert (change.action, change.reason, change.risk) == (Action.CREATE, Reason.DECLARED, Risk.SAFE)
    assert list_fields(plan) == {
        "registry": (None, "main"),
        "subject": (None, "order"),
        "type": (None, "AVRO"),
        "schema": (None, "Order (1 field)"),
        "compatibility": (None, "FULL"),
    }
    assert list_verbs(plan) == [("schema.register", "order"), ("schema.compatibility", "order")]
    assert dump_arguments(plan.operations[0].args) == {
        "endpoint": "main",
        "subject": "order",
        "content": {
            "type": "AVRO",
            "text": TEXT,
        },
    }
    assert world.run(plan).complete
    latest = world.elsewhere.read_version("order")
    assert latest is not None
    assert (latest.version, latest.content.text) == (1, TEXT)
    assert world.elsewhere.read_level("order").effective is CompatibilityLevel.FULL
    assert world.owned()["Schema/order"]["version"] == 1
    assert not world.plan(desired).has_changes


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_layout_of_text_is_not_a_change(behavior: Behavior) -> None:
    """P-SCH-02."""
    world = World(registry=MemoryRegistry(behavior), adopts=False)
    world.register("order", {**ORDER, "name": "Order", "namespace": "x"})
    desired = schema(
        "order", {"fields": [{"type": {"type": "string"}, "name": "id"}], "name": "x.Order", "type": "record"}
    )
    plan = world.plan(desired)
    assert not plan.has_changes
    assert world.run(plan).complete
    assert world.registry.writes == []
    assert world.versions("order") == [1]


def test_change_shows_differences_and_their_risk() -> None:
    world = World()
    world.apply(schema("order", ORDER, compatibility="NONE"))
    plan = world.plan(schema("order", avro("Order", id="long", note={"type": "string", "default": ""})))
    assert list_fields(plan)["schema.Order.id (type-changed)"] == ("string", "long")
    risks = {item.path: item.risk for item in get_only_change(plan).fields}
    assert risks == {
        "schema.Order.id (type-changed)": Risk.DISRUPTIVE,
        "schema.Order.note (field-added)": Risk.SAFE,
        "compatibility": Risk.DISRUPTIVE,
    }


def test_documentation_alone_is_a_new_version_without_risk() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    plan = world.plan(schema("order", {**ORDER, "doc": "An order."}))
    assert list_fields(plan) == {"schema.Order (documentation-added)": (None, "An order.")}
    assert get_only_change(plan).risk is Risk.SAFE
    assert world.run(plan).complete
    assert world.versions("order") == [1, 2]


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_older_version_is_an_error(behavior: Behavior) -> None:
    """P-SCH-04."""
    world = World(registry=MemoryRegistry(behavior))
    world.apply(schema("order", ORDER))
    world.register("order", ORDER_WITH_SIZE)
    plan = world.plan(schema("order", ORDER))
    (problem,) = plan.diagnostics
    assert (problem.code, problem.severity) == ("schema-older-version", Severity.ERROR)
    assert "version 1 of subject" in problem.detail
    assert "latest version is 2" in problem.detail
    assert plan.operations == ()
    change = get_only_change(plan)
    assert (change.reason, change.blocked) == (Reason.DRIFTED, "schema-older-version")
    assert [item.path for item in change.fields] == ["schema.Order.size (field-removed)"]


def test_later_version_of_another_client_is_drift() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    world.register("order", ORDER_WITH_SIZE)
    desired = schema("order", avro("Order", id="string", note={"type": "string", "default": ""}))
    plan = world.plan(desired)
    assert get_only_change(plan).reason is Reason.DRIFTED
    assert world.run(plan).complete
    assert world.versions("order") == [1, 2, 3]
    world.register("order", avro("Order", id="string"))
    assert not world.plan(desired).has_changes  # an equal content keeps its version


def test_missing_subject_is_registered_again() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    world.elsewhere.delete_subject("order")
    plan = world.plan(schema("order", ORDER))
    change = get_only_change(plan)
    assert (change.action, change.reason) == (Action.CREATE, Reason.MISSING)
    assert world.run(plan).complete
    assert world.owned()["Schema/order"]["version"] == 2


def test_protobuf_and_json_are_compared_by_meaning() -> None:
    world = World()
    proto = 'syntax = "proto3";\nmessage Order { string id = 1; }\n'
    json_schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    world.apply(schema("order-p", proto, type="PROTOBUF"), schema("order-j", json_schema, type="JSON"))
    reformatted = 'syntax = "proto3";\n\n// An order.\nmessage Order {\n  string id = 1;\n}\n'
    reordered = '{"properties": {"id": {"type": "string"}}, "type": "object"}'
    plan = world.plan(
        schema("order-p", reformatted, type="PROTOBUF"), schema("order-j", reordered, type="JSON")
    )
    assert not plan.has_changes
    changed = world.plan(
        schema("order-p", proto.replace("string", "int32"), type="PROTOBUF"),
        schema("order-j", json_schema, type="JSON"),
    )
    assert [item.path for item in get_only_change(changed).fields] == ["schema.Order.id (type-changed)"]


# Adoption.


def test_different_subject_is_changed_only_with_adoption() -> None:
    world = World(adopts=False)
    world.register("order", ORDER)
    plan = world.plan(schema("order", ORDER_WITH_SIZE))
    assert list_codes(plan) == ["adoption"]
    assert get_only_change(plan).blocked == "adoption"
    assert world.versions("order") == [1]
    allowed = world.plan(schema("order", ORDER_WITH_SIZE, lifecycle={"adopt": True}))
    assert get_only_change(allowed).reason is Reason.ADOPT
    assert world.run(allowed).complete
    assert world.versions("order") == [1, 2]


def test_renamed_manifest_keeps_its_subject() -> None:
    world = World(adopts=False)
    world.apply(schema("old", ORDER, subject="order"))
    plan = world.plan(schema("new", ORDER, subject="order"), scope=ALLOW_DELETES)
    assert plan.operations == ()
    assert list_codes(plan) == ["renamed"]
    assert world.run(plan).complete
    assert list(world.owned()) == ["Schema/new"]
    changed = schema("newer", ORDER_WITH_SIZE, subject="order")
    plan = world.plan(changed, scope=ALLOW_DELETES)
    assert list_verbs(plan) == [("schema.register", "newer")]
    assert world.run(plan).complete
    assert world.run(world.plan(changed, scope=ALLOW_DELETES)).complete
    assert list(world.owned()) == ["Schema/newer"]
    assert world.versions("order") == [1, 2]


def test_subject_of_resource_cannot_change() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    plan = world.plan(schema("order", ORDER, subject="other"))
    assert list_codes(plan) == ["subject-changed"]
    assert plan.operations == ()


def test_two_manifests_for_one_subject_contradict() -> None:
    world = World()
    plan = world.plan(schema("a", ORDER, subject="order"), schema("b", ORDER, subject="order"))
    assert list_codes(plan) == ["contradiction"]


# References.


def test_referenced_schema_is_registered_first() -> None:
    """P-SCH-01."""
    world = World()
    line = schema("line", avro("x.Line", o="x.Order"), "x.Order")
    order = schema("order", avro("x.Order", id="string"))
    plan = world.plan(line, order)
    assert list_verbs(plan) == [("schema.register", "order"), ("schema.register", "line")]
    assert world.run(plan).complete
    latest = world.elsewhere.read_version("line")
    assert latest is not None
    assert latest.content.references == (SchemaReference("x.Order", "order", 1),)
    assert not world.plan(line, order).has_changes


def test_reference_to_latest_follows_a_change_in_the_same_plan() -> None:
    world = World()
    user = schema("user", avro("User", order="Order"), "Order")
    world.apply(user, schema("order", ORDER))
    plan = world.plan(user, schema("order", ORDER_WITH_SIZE))
    assert list_verbs(plan) == [("schema.register", "order"), ("schema.register", "user")]
    (user_change,) = (change for change in plan.changes if change.id.name == "user")
    assert [item.path for item in user_change.fields] == ["references"]
    assert world.run(plan).complete
    latest = world.elsewhere.read_version("user")
    assert latest is not None
    assert latest.content.references == (SchemaReference("Order", "order", 2),)
    assert not world.plan(user, schema("order", ORDER_WITH_SIZE)).has_changes


def test_reference_follows_a_change_further_down() -> None:
    world = World()
    schemas = [
        schema("top", avro("Top", middle="Middle"), "Middle"),
        schema("middle", avro("Middle", order="Order"), "Order"),
    ]
    world.apply(*schemas, schema("order", ORDER))
    plan = world.plan(*schemas, schema("order", ORDER_WITH_SIZE))
    assert [name for _, name in list_verbs(plan)] == ["order", "middle", "top"]
    assert world.run(plan).complete
    assert not world.plan(*schemas, schema("order", ORDER_WITH_SIZE)).has_changes


def test_reference_to_a_number_stays() -> None:
    world = World()
    user = declare(
        "Schema",
        "user",
        {
            "schema": avro("User", order="Order"),
            "references": [{"name": "Order", "subject": "order", "version": 1}],
        },
    )
    world.register("order", ORDER)
    world.apply(user)
    world.register("order", ORDER_WITH_SIZE)
    assert not world.plan(user).has_changes


def test_latest_of_another_project_is_followed() -> None:
    world = World()
    world.register("order", ORDER)
    user = schema("user", avro("User", order="Order"), "Order")
    world.apply(user)
    world.register("order", ORDER_WITH_SIZE)
    plan = world.plan(user)
    assert list(list_fields(plan)) == ["references"]
    assert world.run(plan).complete
    assert not world.plan(user).has_changes


@pytest.mark.parametrize("version", ["latest", 7])
def test_missing_reference_is_an_error(version: Json) -> None:
    world = World()
    if version == 7:
        world.register("order", ORDER)
    references: Json = [{"name": "Order", "subject": "order", "version": version}]
    plan = world.plan(
        declare("Schema", "user", {"schema": avro("User", order="Order"), "references": references})
    )
    (problem,) = plan.diagnostics
    assert (problem.code, problem.is_error) == ("reference-missing", True)
    assert plan.operations == ()


def test_circle_of_references_is_an_error() -> None:
    world = World()
    plan = world.plan(schema("a", avro("A", b="B"), "B"), schema("b", avro("B", a="A"), "A"))
    assert set(list_codes(plan)) == {"reference-circle"}


def test_reference_to_a_schema_outside_the_plan_is_denied() -> None:
    world = World()
    user = schema("user", avro("User", order="Order"), "Order")
    world.apply(user, schema("order", ORDER))
    scope = PlanScope(targets=frozenset({user.id}))
    plan = world.plan(user, schema("order", ORDER_WITH_SIZE), scope=scope)
    (problem,) = plan.diagnostics
    assert (problem.code, problem.severity) == ("reference-not-planned", Severity.DENIED)
    assert problem.subject == "Schema/order"
    assert plan.operations == ()


def test_schema_waits_for_the_adoption_of_a_referenced_schema() -> None:
    world = World(adopts=False)
    world.register("order", ORDER)
    user, other = schema("user", avro("User", order="Order"), "Order"), schema("other", ORDER)
    plan = world.plan(user, other, schema("order", ORDER_WITH_SIZE))
    assert sorted(list_codes(plan)) == ["adoption", "reference-not-planned"]
    assert list_verbs(plan) == [("schema.register", "other")]


def test_denied_reference_also_blocks_the_schemas_behind_it() -> None:
    """The user refers to the order, and the cart to the user. The user's new version is not registered."""
    world = World()
    user = schema("user", avro("User", order="Order"), "Order")
    cart = schema("cart", avro("Cart", user="User"), "User", compatibility="NONE")
    world.apply(schema("order", ORDER), schema("user", avro("User")), schema("cart", avro("Cart")))
    scope = PlanScope(targets=frozenset({user.id, cart.id}))
    plan = world.plan(user, cart, schema("order", ORDER_WITH_SIZE), scope=scope)
    assert {(str(c.id), c.blocked) for c in plan.changes if c.action is Action.UPDATE} == {
        ("Schema/user", "reference-not-planned"),
        ("Schema/cart", "reference-not-planned"),
    }
    assert plan.operations == ()


def test_denied_registration_blocks_a_referring_schema_as_a_whole() -> None:
    """The level of the cart could change, but the plan would then show a registration that is not made."""
    world = World()
    world.elsewhere.set_level(None, CompatibilityLevel.NONE)
    cart = schema("cart", avro("Cart"), compatibility="NONE")
    world.apply(schema("user", avro("User", order={"type": "string"}), compatibility="FULL"), cart)
    incompatible = schema("user", avro("User"), compatibility="FULL")
    referring = schema("cart", avro("Cart", user="User"), "User", compatibility=None)
    plan = world.plan(incompatible, referring)
    assert {str(c.id) for c in plan.changes if c.blocked == "schema-incompatible"} == {
        "Schema/user",
        "Schema/cart",
    }
    assert plan.operations == ()


def test_policy_that_denies_a_schema_removes_all_operations_of_a_referring_schema() -> None:
    world = World()
    world.elsewhere.set_level(None, CompatibilityLevel.NONE)
    world.apply(schema("user", avro("User")), schema("cart", avro("Cart"), compatibility="FULL"))
    user = schema("user", avro("User", size="long"))
    cart = schema("cart", avro("Cart", user="User"), "User", compatibility=None)
    plan = world.plan(user, cart)
    assert len(plan.operations) == 3
    denied = prune_operations(plan.operations, {user.id: {user.id}})
    assert denied == ((), frozenset({user.id, cart.id}))


def test_names_of_subjects_are_completed() -> None:
    world = World(others={"eu": MemoryRegistry()})
    world.register("order", ORDER)
    world.others["eu"].register("user", SchemaContent(SchemaType.AVRO, TEXT))
    assert list_names("Schema", world.connect()) == ["order", "user"]


def test_reference_that_another_client_overtakes_is_refused() -> None:
    world = World()
    user, order = schema("user", avro("User", order="Order"), "Order"), schema("order", ORDER)
    plan = world.plan(user, order)
    content = SchemaContent(SchemaType.AVRO, dump_canonical_json(ORDER_WITH_SIZE))

    def register_later(other: MemoryRegistry) -> None:
        if other.list_versions("order"):
            other.register("order", content)

    world.registry.faults.run_before(register_later, method="read_version", item="order", nth=None)
    result = world.run(plan)
    assert result.results["schema.register:Schema/user"].status is not Status.DONE
    assert world.versions("user") == []


# Levels.


@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ("FULL", "BACKWARD", "schema.compatibility"),
        ("BACKWARD", "FULL", "schema.register"),
        ("BACKWARD", "FORWARD", "schema.compatibility"),
        ("NONE", "FULL_TRANSITIVE", "schema.register"),
    ],
)
def test_level_is_loosened_before_and_tightened_after(
    behavior: Behavior, before: str, after: str, first: str
) -> None:
    world = World(registry=MemoryRegistry(behavior))
    world.apply(schema("order", ORDER, compatibility=before))
    plan = world.plan(schema("order", ORDER_WITH_SIZE, compatibility=after))
    assert len(plan.operations) == 2
    assert plan.operations[0].verb == first
    assert list(plan.operations[1].needs) == [plan.operations[0].id]
    assert world.run(plan).complete
    assert world.elsewhere.read_level("order").effective.value == after
    assert not world.plan(schema("order", ORDER_WITH_SIZE, compatibility=after)).has_changes


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_level_that_is_no_longer_declared_is_removed(behavior: Behavior) -> None:
    world = World(registry=MemoryRegistry(behavior))
    world.apply(schema("order", ORDER, compatibility="FULL"))
    plan = world.plan(schema("order", ORDER))
    assert list_fields(plan) == {"compatibility": ("FULL", None)}
    assert world.run(plan).complete
    level = world.elsewhere.read_level("order")
    assert (level.own, level.effective) == (None, behavior.level)
    assert not world.plan(schema("order", ORDER)).has_changes


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_level_of_another_client_stays_if_none_is_declared(behavior: Behavior) -> None:
    world = World(registry=MemoryRegistry(behavior))
    world.apply(schema("order", ORDER))
    world.elsewhere.set_level("order", CompatibilityLevel.FULL)
    assert not world.plan(schema("order", ORDER)).has_changes
    plan = world.plan(schema("order", ORDER, compatibility=None))
    assert list_fields(plan) == {"compatibility": ("FULL", None)}
    assert world.run(plan).complete
    assert world.elsewhere.read_level("order").own is None


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_declared_global_level_is_set_where_it_can_be_told(behavior: Behavior) -> None:
    world = World(registry=MemoryRegistry(behavior))
    world.elsewhere.set_level(None, CompatibilityLevel.BACKWARD)
    desired = schema("order", ORDER, compatibility="BACKWARD")
    result = world.apply(desired)
    assert result.complete
    assert len(result.results) == (2 if behavior.distinguishes_own_levels else 1)
    assert not world.plan(desired).has_changes
    world.elsewhere.set_level(None, CompatibilityLevel.FULL)
    plan = world.plan(desired)
    if behavior.distinguishes_own_levels:
        assert not plan.has_changes
    else:
        assert world.run(plan).complete
    assert world.elsewhere.read_level("order").own is CompatibilityLevel.BACKWARD
    assert not world.plan(desired).has_changes


def test_level_that_the_registry_does_not_store_is_a_warning() -> None:
    world = World(registry=MemoryRegistry(APICURIO))
    desired = schema("order", ORDER, compatibility="NONE")
    assert world.apply(desired).complete
    plan = world.plan(desired)
    assert (list_codes(plan), plan.has_changes) == ([], False)
    world.elsewhere.set_level(None, CompatibilityLevel.FULL)
    plan = world.plan(desired)
    assert (list_codes(plan), plan.has_changes) == (["level-not-stored"], False)


def test_drifted_level_is_set_again() -> None:
    world = World()
    desired = schema("order", ORDER, compatibility="FULL")
    world.apply(desired)
    world.elsewhere.delete_level("order")
    plan = world.plan(desired)
    assert get_only_change(plan).reason is Reason.DRIFTED
    assert world.run(plan).complete
    assert world.elsewhere.read_level("order").own is CompatibilityLevel.FULL


# Preflight.


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_incompatible_schema_is_found_while_planning(behavior: Behavior) -> None:
    """P-SCH-03."""
    world = World(registry=MemoryRegistry(behavior))
    world.apply(schema("order", ORDER, compatibility="BACKWARD"))
    plan = world.plan(schema("order", avro("Order", id="int"), compatibility="BACKWARD"))
    (problem,) = plan.diagnostics
    assert (problem.code, problem.severity) == ("schema-incompatible", Severity.ERROR)
    assert ("string cannot be read as int" in problem.detail) is behavior.explains_checks
    assert world.versions("order") == [1]
    assert not [call for call in world.registry.writes if call.outcome == "failed"]


def test_level_none_is_not_checked() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    desired = schema("order", avro("Order", id="int"), compatibility="NONE")
    plan = world.plan(desired)
    assert list_codes(plan) == []
    assert world.run(plan).complete


def test_new_level_cannot_be_checked_before() -> None:
    world = World()
    world.apply(schema("order", ORDER, compatibility="FORWARD"))
    plan = world.plan(schema("order", ORDER_WITH_SIZE, compatibility="BACKWARD"))
    assert list_codes(plan) == ["compatibility-unchecked"]
    assert world.run(plan).complete


def test_read_only_registry_is_a_denial() -> None:
    world = World()
    world.registry.set_mode(Mode.READONLY)
    plan = world.plan(schema("order", ORDER))
    (problem,) = plan.diagnostics
    assert (problem.code, problem.severity) == ("registry-read-only", Severity.DENIED)
    assert plan.operations == ()


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_plan_reads_modes_of_subjects_only_if_the_registry_has_modes(behavior: Behavior) -> None:
    world = World(registry=MemoryRegistry(behavior))
    world.plan(schema("order", ORDER))
    read = [call.items for call in world.registry.calls if call.method == "read_mode"]
    assert read == ([("order",)] if world.registry.identify().mode is not None else [])
    assert (read == []) == (behavior is APICURIO)


def test_registry_that_refuses_explains_why() -> None:
    world = World()
    world.apply(schema("order", ORDER, compatibility="BACKWARD"))
    plan = world.plan(
        schema("order", avro("Order", id="int"), compatibility="BACKWARD"), scope=PlanScope(preflight=False)
    )
    result = world.run(plan)
    (failed,) = result.results.values()
    assert failed.error == port.INCOMPATIBLE
    assert "Change the schema so that it is compatible" in failed.message


# Deletion.


def test_undeclared_schema_is_reported_and_stays() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    plan = world.plan()
    assert (list_codes(plan), plan.operations) == (["orphaned"], ())


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_soft_deletion_removes_the_level_and_can_be_rolled_back(behavior: Behavior) -> None:
    world = World(registry=MemoryRegistry(behavior))
    world.apply(schema("order", ORDER, compatibility="FULL"))
    world.apply(schema("order", ORDER_WITH_SIZE, compatibility="FULL"))
    first_id = getattr(world.elsewhere.read_version("order", 1), "id", None)
    plan = world.plan(scope=ALLOW_DELETES)
    assert list_verbs(plan) == [("schema.compatibility", "order"), ("schema.delete", "order")]
    assert get_only_change(plan).risk is Risk.DISRUPTIVE
    run = world.run(plan)
    assert run.complete
    assert world.versions("order") == []
    assert world.elsewhere.list_versions("order", include_deleted=True) == (1, 2)
    assert world.owned() == {}
    rollback = world.rollback(run.run_id)
    assert rollback.complete
    assert world.versions("order") == [3, 4]
    assert getattr(world.elsewhere.read_version("order", 3), "id", None) == first_id
    assert world.elsewhere.read_level("order").own is CompatibilityLevel.FULL
    assert not world.plan(schema("order", ORDER_WITH_SIZE, compatibility="FULL")).has_changes


def test_hard_deletion_loses_the_ids() -> None:
    world = World()
    world.apply(schema("order", ORDER, onDelete="hard"))
    plan = world.plan(scope=ALLOW_DELETES)
    assert list_verbs(plan) == [("schema.delete", "order"), ("schema.purge", "order")]
    assert get_only_change(plan).risk is Risk.IRREVERSIBLE
    assert plan.operations[1].irreversible == "Cannot be restored: the ids of its schemas."
    run = world.run(plan)
    assert run.complete
    assert world.elsewhere.list_versions("order", include_deleted=True) == ()
    rollback = world.plan_rollback(run.run_id)
    assert list_codes(rollback) == ["irreversible"]
    assert list_verbs(rollback) == [("schema.register", "order")]


def test_interrupted_hard_deletion_is_completed_later() -> None:
    world = World()
    world.apply(schema("order", ORDER, onDelete="hard"))
    world.registry.faults.fail(Fault(port.REJECTED, "Not now."), method="delete_subject", nth=2)
    assert not world.run(world.plan(scope=ALLOW_DELETES)).complete
    assert world.elsewhere.list_versions("order", include_deleted=True) == (1,)
    plan = world.plan(scope=ALLOW_DELETES)
    assert list_verbs(plan) == [("schema.purge", "order")]
    assert world.run(plan).complete
    assert world.elsewhere.list_versions("order", include_deleted=True) == ()
    assert world.owned() == {}


def test_kept_schema_is_released() -> None:
    world = World()
    world.apply(schema("order", ORDER, onDelete="keep"))
    plan = world.plan(scope=ALLOW_DELETES)
    assert plan.operations == ()
    assert world.run(plan).complete
    assert world.owned() == {}
    assert world.versions("order") == [1]


def test_protected_schema_is_not_deleted() -> None:
    world = World()
    world.apply(schema("order", ORDER, lifecycle={"preventDestroy": True}))
    plan = world.plan(scope=ALLOW_DELETES)
    assert list_codes(plan) == ["prevent-destroy"]
    assert plan.operations == ()


def test_referenced_schema_is_deleted_last_and_restored_first() -> None:
    world = World()
    user, order = schema("user", avro("User", order="Order"), "Order"), schema("order", ORDER)
    world.apply(user, order)
    run = world.apply(scope=ALLOW_DELETES)
    assert run.complete
    assert list_verbs(run.plan) == [("schema.delete", "user"), ("schema.delete", "order")]
    assert world.rollback(run.run_id).complete
    latest = world.elsewhere.read_version("user")
    assert latest is not None
    assert latest.content.references == (SchemaReference("Order", "order", 2),)
    assert not world.plan(user, order).has_changes


def test_schema_that_others_reference_is_not_deleted() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    world.register("user", avro("User", order="Order"), SchemaReference("Order", "order", 1))
    plan = world.plan(scope=ALLOW_DELETES)
    (problem,) = plan.diagnostics
    assert (problem.code, problem.severity) == ("schema-referenced", Severity.DENIED)
    assert "subject 'user'" in problem.detail
    assert plan.operations == ()


# Rollback and unknown outcomes.


def test_rollback_deletes_only_the_version_of_the_run() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    run = world.apply(schema("order", ORDER_WITH_SIZE))
    plan = world.plan_rollback(run.run_id)
    (op,) = plan.operations
    assert [version.number for version in get_arguments(op, DeleteArgs).versions] == [2]
    assert world.run(plan).complete
    assert world.versions("order") == [1]
    assert not world.plan(schema("order", ORDER)).has_changes


def test_rollback_can_be_rolled_back() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    run = world.apply(schema("order", ORDER_WITH_SIZE))
    undone = world.rollback(run.run_id)
    assert undone.complete
    assert world.rollback(undone.run_id).complete
    assert world.versions("order") == [1, 3]
    assert not world.plan(schema("order", ORDER_WITH_SIZE)).has_changes


def test_rollback_leaves_a_later_version_alone() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    run = world.apply(schema("order", ORDER_WITH_SIZE))
    world.register("order", avro("Order", id="string", size=LONG, note={"type": "string", "default": ""}))
    plan = world.plan_rollback(run.run_id)
    assert (list_codes(plan), plan.operations) == (["conflict"], ())
    assert world.versions("order") == [1, 2, 3]


@pytest.mark.parametrize("after_effect", [False, True])
def test_lost_response_to_a_registration_is_settled(after_effect: bool) -> None:
    world = World()
    fault = Fault(port.LOST, "it did not respond", FaultKind.UNKNOWN)
    world.registry.faults.time_out(after_effect=after_effect, method="register", fault=fault)
    result = world.apply(schema("order", ORDER))
    assert result.complete
    assert world.versions("order") == [1]
    assert world.owned()["Schema/order"]["version"] == 1


# Registries.


def test_schemas_of_several_registries_are_separate() -> None:
    world = World(others={"eu": MemoryRegistry(KARAPACE)})
    plan = world.plan(
        schema("a", ORDER, registry="main", subject="order"),
        schema("b", ORDER_WITH_SIZE, registry="eu", subject="order"),
    )
    assert sorted(plan.endpoints) == ["registries/eu", "registries/main"]
    assert plan.endpoints["registries/main"] == "memory/schema-registry"
    assert world.run(plan).complete
    assert world.others["eu"].list_versions("order") == (1,)


def test_registry_must_be_named_if_there_are_several() -> None:
    world = World(others={"eu": MemoryRegistry()})
    plan = world.plan(schema("order", ORDER), schema("other", ORDER, registry="us"))
    assert list_codes(plan) == ["endpoint-not-configured"] * 2
    assert plan.operations == ()


def test_registry_that_does_not_respond_blocks_only_its_schemas() -> None:
    world = World(others={"eu": MemoryRegistry()})
    world.apply(schema("gone", ORDER, registry="eu"), schema("order", ORDER, registry="main"))
    world.others["eu"].faults.fail(
        Fault(port.UNREACHABLE, "it is unreachable (connection refused)"), method="identify", nth=None
    )
    plan = world.plan(
        schema("order", ORDER_WITH_SIZE, registry="main"),
        schema("other", ORDER, registry="eu"),
        scope=ALLOW_DELETES,
    )
    assert list_codes(plan) == ["endpoint-unreachable"] * 2
    assert list_verbs(plan) == [("schema.register", "order")]
    assert world.run(plan).complete
    assert set(world.owned()) == {"Schema/gone", "Schema/order"}


def test_registry_with_unusable_settings_blocks_only_its_schemas() -> None:
    world = World()

    def open_registry(name: str) -> MemoryRegistry:
        if name == "main":
            return world.registry
        raise KdeclareError(error("unusable-file", "File cannot be used", "'ca.pem' does not exist."))

    clients = RegistryClients(["main", "eu"], open_registry)
    connections = connections_to(MemoryCluster()).with_part(clients)
    request = world._build_request(
        [schema("a", ORDER, registry="main"), schema("b", ORDER, registry="eu")], PlanScope()
    )
    plan = build_plan(request, connections, world.secrets, world.progress)
    assert list_codes(plan) == ["endpoint-unreachable"]
    assert list_verbs(plan) == [("schema.register", "a")]


def test_replaced_registry_is_refused() -> None:
    world = World()
    world.apply(schema("order", ORDER))
    world.registry = MemoryRegistry(Behavior("confluent", id="other/schema-registry"))
    with pytest.raises(KdeclareError) as refused:
        world.plan(schema("order", ORDER))
    assert [d.code for d in refused.value.diagnostics] == ["other-endpoint"]


def test_replaced_registry_can_be_used_under_another_name() -> None:
    """The hint of ``other-endpoint`` can be followed."""
    world = World()
    world.apply(schema("order", ORDER, registry="main"))
    replacement = MemoryRegistry(Behavior("confluent", id="other/schema-registry"))
    clients = RegistryClients(["eu"], lambda _: replacement)
    connections = connections_to(MemoryCluster()).with_part(clients)
    request = world._build_request(
        [schema("order-eu", ORDER, subject="order", registry="eu")],
        PlanScope(forget=frozenset({ResourceId("Schema", "order")})),
    )
    plan = build_plan(request, connections, world.secrets, world.progress)
    assert list_codes(plan) == []
    assert list_verbs(plan) == [("schema.register", "order-eu")]
    assert (plan.summary.create, plan.summary.forget) == (1, 1)


def test_unmanaged_subjects_are_counted() -> None:
    world = World()
    world.register("a", ORDER)
    world.register("b", ORDER)
    assert world.plan(schema("a", ORDER)).summary.unmanaged == 1


# Import.


def export(world: World) -> Mapping[str, str]:
    connections = world.connect()
    request = ExportRequest(lambda selections: observe(connections, selections), bool, lambda id_: True)
    return export_manifests(KINDS["Schema"], connections, request).manifests


def test_import_writes_the_latest_versions() -> None:
    world = World()
    world.register("order", ORDER)
    world.register("order", ORDER_WITH_SIZE)
    world.register("user", avro("User", order="Order"), SchemaReference("Order", "order", 2))
    world.elsewhere.set_level("user", CompatibilityLevel.FULL)
    assert export(world)["user"] == (
        "# Version 1 of the subject.\n"
        "apiVersion: kdeclare/v1\n"
        "kind: Schema\n"
        "metadata:\n"
        "  name: user\n"
        "spec:\n"
        "  type: AVRO\n"
        "  schema: |-\n"
        "    {\n"
        '      "fields": [\n'
        "        {\n"
        '          "name": "order",\n'
        '          "type": "Order"\n'
        "        }\n"
        "      ],\n"
        '      "name": "User",\n'
        '      "type": "record"\n'
        "    }\n"
        "  references:\n"
        "    - name: Order\n"
        "      subject: order\n"
        "      version: 2\n"
        "  compatibility: FULL\n"
    )


# connectors


def test_schemas_of_topics_come_before_connectors_and_are_deleted_after_them() -> None:
    world = World(connect_clusters={"eu": MemoryConnectCluster()})
    names = ("ft-value", "ft-key", "ft-value-2", "left-value")
    schemas = {name: schema(name, avro("Order"), subject=name) for name in names}
    source: dict[str, Any] = {"class": "FileStreamSource", "config": {"file": "in.txt", "topic": "ft"}}
    declared = [declare("Connector", "src", source), *schemas.values()]
    (creation,) = (op for op in world.plan(*declared).operations if op.verb == "connector.create")
    registrations = {id_ for id_ in creation.follows if "Schema/" in id_}
    assert registrations == {"schema.register:Schema/ft-value", "schema.register:Schema/ft-key"}
    assert world.apply(*declared).complete

    schemas["ft-value"] = schema(
        "ft-value", avro("Order", note={"type": "string", "default": ""}), subject="ft-value"
    )
    moved = declare("Connector", "src", {**source, "config": {"file": "other.txt", "topic": "ft"}})
    plan = world.plan(moved, *schemas.values())
    (change,) = (op for op in plan.operations if op.verb == "connector.configure")
    assert "schema.register:Schema/ft-value" in change.follows

    plan = world.plan(schemas["left-value"], scope=PlanScope(allow_deletes=True))
    needs = {op.resource.name: op.needs.keys() for op in plan.operations if op.verb == "schema.delete"}
    assert {name: "connector.delete:Connector/src" in ids for name, ids in needs.items()} == {
        "ft-value": True,
        "ft-key": True,
        "ft-value-2": False,
    }
