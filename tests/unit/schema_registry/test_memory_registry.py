"""The in-memory registry itself: faults, other clients, modes, and its compatibility checker."""

import pytest

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    Mode,
    SchemaContent,
    SchemaReference,
    SchemaType,
)
from kdeclare.providers.schema_registry.testing import APICURIO, KARAPACE, MemoryRegistry
from kdeclare.providers.schema_registry.testing.compatibility import find_incompatibilities
from kdeclare.testing.faults import Crash
from tests.registries import AMOUNT, ID, build_avro, build_record

V1, V2 = build_record(ID), build_record(ID, ("amount", "int", 0))
BACKWARD, FORWARD, FULL = CompatibilityLevel.BACKWARD, CompatibilityLevel.FORWARD, CompatibilityLevel.FULL


# --- faults


def test_lost_registration_has_no_effect() -> None:
    registry = MemoryRegistry()
    registry.faults.time_out(after_effect=False)
    with pytest.raises(Fault) as raised:
        registry.register("s", V1)
    assert raised.value.kind is FaultKind.UNKNOWN
    assert registry.list_versions("s") == ()
    assert [(call.method, call.items, call.outcome) for call in registry.writes] == [
        ("register", ("s",), "lost")
    ]


def test_unanswered_registration_has_effect() -> None:
    registry = MemoryRegistry()
    registry.faults.time_out(after_effect=True)
    with pytest.raises(Fault):
        registry.register("s", V1)
    assert registry.list_versions("s") == (1,)
    assert registry.writes[0].outcome == "unanswered"


def test_faults_count_changes_unless_method_is_named() -> None:
    registry = MemoryRegistry()
    registry.faults.fail(Fault(port.LOST, "gone", FaultKind.RETRIABLE), method="read_version")
    registry.faults.crash(after_effect=True, nth=2)
    registry.register("s", V1)
    with pytest.raises(Fault, match="gone"):
        registry.read_version("s")
    assert registry.read_version("s") is not None
    with pytest.raises(Crash):
        registry.set_level("s", FULL)
    assert registry.read_level("s").effective is FULL


def test_fault_can_be_limited_to_subject() -> None:
    registry = MemoryRegistry()
    registry.faults.fail(Fault(port.NOT_AUTHORIZED, "no"), item="s", nth=None)
    registry.register("t", V1)
    with pytest.raises(Fault, match="no"):
        registry.register("s", V1)


def test_other_client_changes_same_registry() -> None:
    registry = MemoryRegistry()
    registry.faults.run_before(lambda other: other.register("s", V2), method="register", item="s")
    assert registry.register("s", V1).version == 2
    assert [call.method for call in registry.calls] == ["register"]


# --- modes


def test_read_only_registry_refuses_changes() -> None:
    registry = MemoryRegistry(KARAPACE)
    registry.register("s", V1)
    registry.set_mode(Mode.READONLY)
    for change in (
        lambda: registry.register("s", V2),
        lambda: registry.set_level("s", FULL),
        lambda: registry.delete_level("s"),
        lambda: registry.delete_version("s", 1),
        lambda: registry.delete_subject("s"),
    ):
        with pytest.raises(Fault) as raised:
            change()
        assert raised.value.error == port.NOT_PERMITTED
    assert registry.register("s", V1).version == 1, "an equal content needs no change"
    registry.set_mode(Mode.READWRITE, "s")
    assert registry.register("s", V2).version == 2
    assert registry.read_mode("s") is Mode.READWRITE
    assert registry.read_mode() is Mode.READONLY


def test_registry_without_modes_has_none_to_set() -> None:
    with pytest.raises(ValueError, match="apicurio has no modes"):
        MemoryRegistry(APICURIO).set_mode(Mode.READONLY)


# --- compatibility


def find_reasons(
    reader: SchemaContent, writer: SchemaContent, level: CompatibilityLevel = BACKWARD
) -> list[str]:
    """Return the reasons why ``reader`` cannot follow ``writer``."""
    return find_incompatibilities(level, reader, [writer], lambda *_: V1)


def wrap(schema: JsonValue) -> SchemaContent:
    """Return a record with one field of this type."""
    return build_record(("f", schema))


COLORS = {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}
FEWER_COLORS = {**COLORS, "symbols": ["RED"]}
KEY: JsonValue = {"type": "fixed", "name": "Key", "size": 8}
LIST: JsonValue = {"type": "array", "items": "int"}
NODE: JsonValue = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}


@pytest.mark.parametrize(
    ("reader", "writer", "is_compatible"),
    [
        (V2, V1, True),  # a new field with a default
        (build_record(ID, AMOUNT), V1, False),  # a new field without a default
        (V1, V2, True),  # a removed field
        (wrap("long"), wrap("int"), True),
        (wrap("int"), wrap("long"), False),
        (wrap("bytes"), wrap("string"), True),
        (wrap("string"), wrap("int"), False),
        (wrap(["null", "int"]), wrap("int"), True),
        (wrap("int"), wrap(["null", "int"]), False),
        (wrap(["null", "string"]), wrap(["string", "null"]), True),
        (wrap(["null", "string"]), wrap("int"), False),
        (wrap(COLORS), wrap(FEWER_COLORS), True),
        (wrap(FEWER_COLORS), wrap(COLORS), False),
        (wrap({**FEWER_COLORS, "default": "RED"}), wrap(COLORS), True),
        (wrap(KEY), wrap(KEY), True),
        (wrap({"type": "fixed", "name": "Key", "size": 9}), wrap(KEY), False),
        (wrap({"type": "fixed", "name": "Other", "size": 8}), wrap(KEY), False),
        (wrap(LIST), wrap(LIST), True),
        (wrap({"type": "array", "items": "string"}), wrap(LIST), False),
        (wrap({"type": "map", "values": "int"}), wrap(LIST), False),
        (wrap({"type": "map", "values": "long"}), wrap({"type": "map", "values": "int"}), True),
        (wrap({"type": "int", "logicalType": "date"}), wrap("int"), True),
        (wrap(NODE), wrap(NODE), True),
        (wrap(NODE), wrap("int"), False),
        (build_record(ID, name="Order", namespace="x"), build_record(ID), True),
        (build_record(ID, name="y.Other"), build_record(ID), False),
    ],
)
def test_avro_reader_and_writer(reader: SchemaContent, writer: SchemaContent, is_compatible: bool) -> None:
    assert (not find_reasons(reader, writer)) is is_compatible


def test_every_incompatible_field_is_reported() -> None:
    before, after = build_record(ID, ("b", "string")), build_record(("id", "int"), ("b", "int"))
    assert find_reasons(after, before) == [
        "/fields/id/: string cannot be read as int",
        "/fields/b/: string cannot be read as int",
    ]


def test_renamed_avro_field_needs_alias() -> None:
    renamed = build_avro(
        {
            "type": "record",
            "name": "x.Order",
            "fields": [{"name": "key", "aliases": ["id"], "type": "string"}],
        }
    )
    assert not find_reasons(renamed, V1)
    assert find_reasons(build_record(("key", "string")), V1)


def test_references_are_resolved() -> None:
    def build_line(*fields: JsonValue) -> SchemaContent:
        every: list[JsonValue] = [{"name": "o", "type": "x.Order"}, *fields]
        reference = SchemaReference("x.Order", "order", 1)
        return build_avro({"type": "record", "name": "x.Line", "fields": every}, reference)

    line = build_line()
    assert not find_reasons(line, line)
    assert find_reasons(build_line({"name": "n", "type": "int"}), line)


@pytest.mark.parametrize(("level", "is_compatible"), [(BACKWARD, True), (FORWARD, False), (FULL, False)])
def test_direction(level: CompatibilityLevel, is_compatible: bool) -> None:
    before, after = build_record(ID, AMOUNT), build_record(ID)  # removes a field without a default
    assert (not find_reasons(after, before, level)) is is_compatible


def test_json_schema() -> None:
    def build(text: str) -> SchemaContent:
        return SchemaContent(SchemaType.JSON, text)

    before = build('{"type": "object", "properties": {"id": {"type": "string"}}}')
    assert not find_reasons(build('{"type": "object", "properties": {"n": {"type": "integer"}}}'), before)
    assert find_reasons(build('{"type": "object", "properties": {"id": {"type": "integer"}}}'), before) == [
        "#/properties/id: the type changed from string to integer"
    ]
    assert find_reasons(build('{"type": "object", "required": ["id"]}'), before) == [
        "#: the property id became required"
    ]
    assert not find_reasons(build("true"), before)


def test_protobuf() -> None:
    def build(fields: str) -> SchemaContent:
        return SchemaContent(SchemaType.PROTOBUF, f'syntax = "proto3"; message A {{ {fields} }}')

    before = build("string id = 1; // a comment\n int32 n = 2;")
    assert not find_reasons(build("string name = 1; repeated string more = 3;"), before)
    assert find_reasons(build("int64 id = 1;"), before) == [
        "A: the type of field 1 changed from string to int64"
    ]


def test_other_schema_type_is_incompatible() -> None:
    assert find_reasons(SchemaContent(SchemaType.JSON, "{}"), V1) == [
        "The schema type changed from AVRO to JSON"
    ]
