"""Normalized texts, fingerprints and summaries of schemas."""

import json
from typing import Any

import pytest
from hypothesis import given

from kdeclare.providers.schema_registry.client.port import SchemaType
from kdeclare.providers.schema_registry.schema.content import (
    compute_fingerprint,
    list_differences,
    list_undocumented,
    normalize_text,
    summarize_schema,
)
from tests.unit.schemas.avro_schemas import build_avro_schemas

AVRO, JSON, PROTOBUF = SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF
MESSAGE = 'syntax = "proto3"; message Order { string id = 1; } message Line { Order order = 1; }'


@given(build_avro_schemas())
def test_normalized_text_is_stable(schema: Any) -> None:
    text = normalize_text(AVRO, json.dumps(schema))
    assert normalize_text(AVRO, text) == text
    assert list_differences(AVRO, json.dumps(schema), text) == ()
    assert compute_fingerprint(AVRO, text, ()) == compute_fingerprint(AVRO, json.dumps(schema), ())


@pytest.mark.parametrize(
    ("type_", "text"),
    [(PROTOBUF, MESSAGE), (JSON, '{"type": "object", "properties": {"a": {"type": "string"}}}')],
)
def test_normalized_text_of_other_languages_is_stable(type_: SchemaType, text: str) -> None:
    normalized = normalize_text(type_, text)
    assert normalize_text(type_, normalized) == normalized
    assert list_differences(type_, text, normalized) == ()


def test_text_that_is_no_schema_is_compared_as_text() -> None:
    assert normalize_text(AVRO, '{"type": "strin') == '{"type": "strin'
    assert compute_fingerprint(AVRO, "a", ()) != compute_fingerprint(AVRO, "b", ())
    assert list_undocumented(AVRO, "a") == []
    assert summarize_schema(AVRO, "abc") == "3 characters"


def test_fingerprint_depends_on_language_and_references() -> None:
    fingerprint = compute_fingerprint(AVRO, '"string"', ["a = s @1", "b = s @2"])
    assert fingerprint == compute_fingerprint(AVRO, '{"type": "string"}', ["b = s @2", "a = s @1"])
    assert fingerprint != compute_fingerprint(AVRO, '"string"', ["a = s @1", "b = s @3"])
    assert fingerprint != compute_fingerprint(JSON, '"string"', ["a = s @1", "b = s @2"])


@pytest.mark.parametrize(
    ("type_", "text", "summary"),
    [
        (AVRO, '{"type": "record", "name": "x.Order", "fields": []}', "x.Order (0 fields)"),
        (AVRO, '{"type": "enum", "name": "Color", "symbols": ["RED"]}', "Color (enum)"),
        (AVRO, '"string"', "string"),
        (AVRO, '["null", "x.Order"]', "union of 2 types"),
        (JSON, '{"title": "Order", "properties": {"a": {}}}', "Order (1 property)"),
        (JSON, '{"type": "object", "properties": {"a": {}, "b": {}}}', "2 properties"),
        (JSON, "true", "JSON schema"),
        (PROTOBUF, MESSAGE, "Order (2 messages)"),
    ],
)
def test_summary_names_the_root(type_: SchemaType, text: str, summary: str) -> None:
    assert summarize_schema(type_, text) == summary
