"""Avro schemas: other notations make no difference, and edits do."""

import json
from typing import Any

import fastavro
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaType
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import parse_avro
from kdeclare.providers.schema_registry.schemas.comparison import (
    compute_schema_fingerprint,
    describe_differences,
    is_same_schema,
)
from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.text_diff import diff_schema_texts
from tests.unit.schemas.avro_schemas import build_avro_schemas, edit_avro, write_avro


def build_content(text: str) -> SchemaContent:
    return SchemaContent(SchemaType.AVRO, text)


@given(st.data(), build_avro_schemas())
def test_other_notation_is_the_same_schema(data: st.DataObject, schema: Any) -> None:
    first, second = (build_content(write_avro(data.draw, schema)) for _ in range(2))
    parsed = parse_avro(first.text)
    assert dump_canonical_json(parsed.root) == dump_canonical_json(schema)
    assert parse_avro("\n".join(format_layout(parsed))) == parsed
    assert is_same_schema(first, second)
    assert compute_schema_fingerprint(first) == compute_schema_fingerprint(second)
    assert describe_differences(first, second) == ()
    assert not diff_schema_texts(first, second).has_changes


@given(st.data(), build_avro_schemas())
def test_edit_makes_another_schema_with_described_differences(data: st.DataObject, schema: Any) -> None:
    first = build_content(write_avro(data.draw, schema))
    second = build_content(write_avro(data.draw, edit_avro(data.draw, schema)))
    differences = describe_differences(first, second)
    assert not is_same_schema(first, second)
    assert compute_schema_fingerprint(first) != compute_schema_fingerprint(second)
    assert differences
    assert DifferenceKind.TEXT_CHANGED not in {difference.kind for difference in differences}
    assert diff_schema_texts(first, second).has_changes


@given(st.data(), build_avro_schemas(), build_avro_schemas())
def test_two_schemas_are_the_same_if_nothing_differs(data: st.DataObject, one: Any, other: Any) -> None:
    first, second = build_content(write_avro(data.draw, one)), build_content(write_avro(data.draw, other))
    is_equal = dump_canonical_json(one) == dump_canonical_json(other)
    assert is_same_schema(first, second) == is_equal
    differences = describe_differences(first, second)
    assert (not differences) == is_equal
    assert DifferenceKind.TEXT_CHANGED not in {difference.kind for difference in differences}


@given(st.data(), build_avro_schemas(namespaces=("x", "x.y")))
def test_fastavro_accepts_what_the_parser_accepts(data: st.DataObject, schema: Any) -> None:
    text = write_avro(data.draw, schema, wraps_names=False)  # which fastavro does not accept for all types
    parse_avro(text)
    written = fastavro.schema.to_parsing_canonical_form(json.loads(text))
    assert written == fastavro.schema.to_parsing_canonical_form(schema)
