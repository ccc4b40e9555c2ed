"""Documentation of schemas, and names of subjects."""

from typing import Any

import pytest

from kdeclare.providers.schema_registry.client.port import SchemaContent
from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
from kdeclare.providers.schema_registry.schemas.documentation import (
    find_undocumented_parts,
    list_documentable_parts,
)
from kdeclare.providers.schema_registry.schemas.problems import SchemaError
from kdeclare.providers.schema_registry.schemas.subject_names import (
    NamingStrategy,
    RecordPart,
    TopicPart,
    build_subject,
    find_record_name,
    parse_subject,
)
from tests.unit.schemas.contents import build_avro, build_json_schema, build_protobuf

AVRO = {
    "type": "record",
    "name": "x.Order",
    "doc": "An order.",
    "fields": [
        {"name": "id", "type": "string", "doc": "Unique."},
        {"name": "blank", "type": "string", "doc": " "},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": []}, "doc": "Which."},
    ],
}
JSON_SCHEMA = {
    "description": "An order.",
    "properties": {
        "id": {"title": "Id"},
        "items": {"description": "d", "type": "array", "items": {"properties": {"price": {}}}},
        "free": {"description": "d", "additionalProperties": {"properties": {"x": {}}}},
    },
    "definitions": {"Line": {"description": "d"}, "Other": {}},
    "allOf": [{"properties": {"more": {}}}],
}
PROTOBUF = """
// An order.
message Order {
  optional string id = 1; // Unique.
  /* Which. */
  optional Kind kind = 2;
  optional string plain = 3;

  message Line { // A line.
    optional int32 price = 1;
  }
}
enum Kind { A = 0; }
"""


@pytest.mark.parametrize(
    ("content", "undocumented"),
    [
        (build_avro(AVRO), ["enum x.Kind", "field x.Order.blank"]),
        (
            build_json_schema(JSON_SCHEMA),
            [
                "property id",
                "property items[].price",
                "property free{}.x",
                "definition Other",
                "property more",
            ],
        ),
        (build_protobuf(PROTOBUF), ["field Order.plain", "field Order.Line.price", "enum Kind"]),
    ],
)
def test_undocumented_parts_are_found(content: SchemaContent, undocumented: list[str]) -> None:
    assert [f"{part.noun} {part.path}" for part in find_undocumented_parts(content)] == undocumented


def test_documented_parts_are_listed_too() -> None:
    parts = {part.path: part.is_documented for part in list_documentable_parts(build_protobuf(PROTOBUF))}
    assert parts == {
        "Order": True,
        "Order.id": True,
        "Order.kind": True,
        "Order.plain": False,
        "Order.Line": True,
        "Order.Line.price": False,
        "Kind": False,
    }


def test_documentation_of_an_invalid_schema_is_an_error() -> None:
    with pytest.raises(SchemaError):
        find_undocumented_parts(build_avro("{"))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("orders-value", TopicPart("orders", RecordPart.VALUE)),
        ("orders-key", TopicPart("orders", RecordPart.KEY)),
        ("a-key-value", TopicPart("a-key", RecordPart.VALUE)),
        ("orders", None),
        ("orders-VALUE", None),
        ("-value", None),
        ("value", None),
    ],
)
def test_topic_of_a_subject(subject: str, expected: TopicPart | None) -> None:
    assert parse_subject(subject) == expected


def test_other_strategies_use_the_name_of_the_record() -> None:
    strategy = NamingStrategy.TOPIC_RECORD
    assert parse_subject("a-b-x.Order", strategy, "x.Order") == TopicPart("a-b", None)
    assert parse_subject("a-x.Other", strategy, "x.Order") is None
    assert parse_subject("-x.Order", strategy, "x.Order") is None
    assert parse_subject("a-x.Order", strategy) is None
    assert parse_subject("x.Order", NamingStrategy.RECORD, "x.Order") is None


@pytest.mark.parametrize(
    ("strategy", "record_name", "subject"),
    [
        (NamingStrategy.TOPIC, None, "orders-key"),
        (NamingStrategy.RECORD, "x.Order", "x.Order"),
        (NamingStrategy.TOPIC_RECORD, "x.Order", "orders-x.Order"),
        (NamingStrategy.RECORD, None, None),
        (NamingStrategy.TOPIC_RECORD, None, None),
    ],
)
def test_subject_of_a_topic(strategy: NamingStrategy, record_name: str | None, subject: str | None) -> None:
    assert build_subject(strategy, "orders", RecordPart.KEY, record_name) == subject


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (build_avro(AVRO), "x.Order"),
        (build_avro('"string"'), None),
        (build_avro('["null"]'), None),
        (build_json_schema({"title": "Order"}), "Order"),
        (build_json_schema({}), None),
        (build_json_schema(True), None),
        (build_protobuf("package x; message Order {} message Line {}"), "x.Order"),
        (build_protobuf("enum Kind { A = 0; }"), None),
    ],
)
def test_name_of_the_record(content: Any, name: str | None) -> None:
    assert find_record_name(parse_schema(content)) == name
