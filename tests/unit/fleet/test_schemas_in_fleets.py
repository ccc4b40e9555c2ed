"""Schemas in snapshots and audits of fleets: contents, levels, and registries that do not respond."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.fleet_capabilities import is_self_contained
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import (
    Row,
    build_declared_cluster_row,
    build_declared_rows,
    read_live_rows,
)
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client.port import (
    UNREACHABLE,
    CompatibilityLevel,
    SchemaContent,
    SchemaType,
)
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.schema.arguments import SchemaRecord
from kdeclare.providers.schema_registry.schema.content import compute_fingerprint
from kdeclare.providers.schema_registry.schema.fleet import SchemaCodec
from kdeclare.providers.schema_registry.schema.live import SchemaSelection, SchemaState, read_schemas
from kdeclare.providers.schema_registry.schema.spec import SchemaBody
from kdeclare.providers.schema_registry.testing import APICURIO, CONFLUENT, MemoryRegistry
from kdeclare.testing.world import declare
from tests.connections import connections_to
from tests.jsontypes import Json

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def record(name: str, **fields: str) -> Json:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


ORDER, CHANGED = record("Order", id="string"), record("Order", id="string", size="long")


def make_schema(name: str, **more: Json) -> DesiredResource:
    return declare("Schema", name, {"schema": ORDER, "compatibility": "FULL", **more})


def make_record(item: DesiredResource) -> SchemaRecord:
    body = item.get_body(SchemaBody)
    fingerprint = compute_fingerprint(body.type, body.text, ())
    return SchemaRecord("main", body.subject, fingerprint, 1, CompatibilityLevel.FULL)


def register(registry: MemoryRegistry, subject: str, schema: Json, level: str = "FULL") -> None:
    registry.set_level(subject, CompatibilityLevel.NONE)
    registry.register(subject, SchemaContent(SchemaType.AVRO, dump_canonical_json(schema)))
    registry.set_level(subject, CompatibilityLevel(level))


def connect(registries: Mapping[str, MemoryRegistry]) -> Connections:
    clients = RegistryClients(registries, dict(registries).__getitem__)
    return connections_to(MemoryCluster(cluster_id="id-1")).with_part(clients)


def find(
    registry: MemoryRegistry, desired: list[DesiredResource], owned: Mapping[str, OwnedRecord]
) -> list[Row]:
    declared = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
    for item in desired:
        declared += build_declared_rows("eu-1", item, item.id, owned.get(str(item.id)))
    orphans = owned.keys() - {str(item.id) for item in desired}
    for text in orphans:
        declared += build_declared_rows("eu-1", None, make_schema(text.partition("/")[2]).id, owned[text])
    live = list(read_live_rows(connect({"main": registry}), "eu-1", {}, NOW))
    return [row for row in audit_rows(declared, live, unmanaged_keys=True) if row["kind"] == "Schema"]


def test_audit_finds_drift_of_schemas() -> None:
    registry = MemoryRegistry()
    names = ("good", "changed", "loosened", "gone", "new", "old")
    schemas = {name: make_schema(name) for name in names}
    owned = {str(item.id): make_record(item) for name, item in schemas.items() if name != "new"}
    for name in ("good", "old", "unknown"):
        register(registry, name, ORDER)
    register(registry, "loosened", ORDER, "NONE")
    register(registry, "changed", CHANGED)
    rows = find(registry, [schemas[name] for name in names if name != "old"], owned)
    assert {(row["name"], row["finding"], row["path"]) for row in rows} == {
        ("changed", "changed", "schema.Order.size (field-removed)"),
        ("loosened", "changed", "compatibility"),
        ("gone", "missing", None),
        ("new", "pending", None),
        ("old", "orphaned", None),
        ("unknown", "unmanaged", None),
    }


def test_audit_says_in_words_how_a_schema_differs() -> None:
    registry = MemoryRegistry()
    item = make_schema("order")
    register(registry, "order", {**record("Order", id="long", size="long"), "doc": "An order."})
    messages = {
        row["path"]: row["message"] for row in find(registry, [item], {str(item.id): make_record(item)})
    }
    drifted = (
        "Changed outside kdeclare since the last apply. Changes from the registry's schema to the manifest's:"
    )
    assert messages == {
        "schema.Order (documentation-removed)": f'{drifted} record Order: documentation "An order." removed.',
        "schema.Order.size (field-removed)": f"{drifted} field 'size' of record Order removed (long).",
        "schema.Order.id (type-changed)": f"{drifted} field 'id' of record Order: type changed from long to "
        "string.",
    }


def test_audit_of_a_different_language_has_no_words() -> None:
    registry = MemoryRegistry()
    registry.register("order", SchemaContent(SchemaType.PROTOBUF, 'syntax = "proto3"; message A {}'))
    item = make_schema("order", compatibility="BACKWARD")
    rows = find(registry, [item], {str(item.id): make_record(item)})
    assert {"type", "schema"} <= {row["path"] for row in rows}
    assert not [row for row in rows if "Changes from the registry" in row["message"]]


def test_schema_with_references_is_compared_with_all_schemas() -> None:
    registry = MemoryRegistry()
    register(registry, "order", ORDER)
    user = make_schema(
        "user",
        schema=record("User", order="Order"),
        references=[{"name": "Order", "subject": "order"}],
        compatibility="NONE",
    )
    kind = KINDS["Schema"]
    assert is_self_contained(make_schema("order"))
    assert not is_self_contained(user)
    difference = kind.diff(user.id, user, decode({"main": registry}), None, PlanContext())
    assert difference.change is not None
    assert difference.change.action is Action.CREATE


def decode(registries: Mapping[str, MemoryRegistry]) -> LiveState:
    """Return the live state that an audit reads from a snapshot of these registries."""
    listing = SchemaCodec().list_objects(connect(registries))
    objects = [(item.key, json.dumps(item.body)) for item in listing.objects]
    return LiveState(SchemaCodec().decode(json.dumps(listing.system), objects))


def test_unreachable_registry_is_named() -> None:
    registry = MemoryRegistry()
    registry.faults.fail(Fault(UNREACHABLE, "connection refused"), nth=None, method="identify")
    item = make_schema("order")
    (row,) = find(registry, [item], {str(item.id): make_record(item)})
    assert "registries/main did not respond: connection refused" in row["message"]


def test_snapshot_restores_the_live_state() -> None:
    registries = {"main": MemoryRegistry(CONFLUENT), "eu": MemoryRegistry(APICURIO)}
    for registry in registries.values():
        register(registry, "order", ORDER)
    register(registries["eu"], "user", CHANGED, "BACKWARD")
    restored = decode(registries).get(SchemaState)
    read = read_schemas(connect(registries), SchemaSelection(has_all=True))
    for name in registries:
        for subject in ("order", "user", "absent"):
            first, second = restored.get(name).find(subject), read.get(name).find(subject)
            assert first is not None
            assert second is not None
            assert first.level == second.level
            assert [v.fingerprint for v in first.versions] == [v.fingerprint for v in second.versions]
