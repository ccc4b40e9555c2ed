"""Parse and compare JSON Schemas: single cases, and properties of generated schemas."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.schema_registry.schemas.comparison import (
    compute_schema_fingerprint,
    describe_differences,
    is_same_schema,
    parse_schema,
)
from kdeclare.providers.schema_registry.schemas.differences import (
    DifferenceKind,
    DifferenceScope,
    classify_differences,
)
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.text_diff import diff_schema_texts
from tests.unit.report.golden_files import check_golden
from tests.unit.schemas.contents import build_json_schema, list_messages, list_problems, render_differences
from tests.unit.schemas.drawing import Draw

OLD = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "gone": {"type": "integer"},
        "kind": {"enum": ["A", "B"]},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"price": {"type": "number", "minimum": 1}},
                "required": ["price"],
            },
        },
        "state": {"anyOf": [{"type": "string"}, {"type": "integer", "maximum": 9}]},
    },
    "required": ["id"],
}
NEW = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order of a customer",
    "type": "object",
    "properties": {
        "id": {"type": ["integer", "null"], "description": "Unique.", "default": None},
        "kind": {"enum": ["A", "C"]},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "price": {"type": "number", "minimum": 2},
                    "line": {"$ref": "#/definitions/Line"},
                },
            },
        },
        "state": {"anyOf": [{"type": "string"}, {"type": "integer", "maximum": 8}]},
        "new": {"type": "boolean"},
    },
    "required": ["kind", "id", "new"],
    "additionalProperties": False,
    "definitions": {"Line": {"type": "integer"}},
}


def test_differences_match_golden_file() -> None:
    check_golden(
        "schema-differences-json", render_differences(build_json_schema(OLD), build_json_schema(NEW))
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1: The text is not valid JSON: Expecting value."),
        ("[]", "line 1, column 1: A JSON Schema must be an object, true or false, not []."),
        ('{"$schema": 1}', "line 1, column 13, $schema: The value of '$schema' must be a string."),
        (
            '{"properties": {"a": {"minimum": "x"}}}',
            "line 1, column 34, properties.a.minimum: 'x' is not of type 'number'.",
        ),
        (
            '{"items": {"$ref": "#/definitions/x"}}',
            "line 1, column 20, items.$ref: "
            "The reference '#/definitions/x' does not refer to a part of this schema.",
        ),
        (
            f'{{"anyOf": [true], "items": {{"$ref": "#/anyOf/{"9" * 5000}"}}}}',
            "line 1, column 37, items.$ref: "
            f"The reference '#/anyOf/{'9' * 5000}' does not refer to a part of this schema.",
        ),
        (
            '{"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 3}',
            "line 1, column 76, exclusiveMinimum: 3 is not of type 'boolean'.",
        ),
    ],
)
def test_invalid_schema_has_problem_with_position(text: str, problem: str) -> None:
    assert problem in list_problems(build_json_schema(text))


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"$ref": "#"},
        {"$ref": "https://example.org/other.json#/x"},
        {"$defs": {"a/b~c": {}}, "items": {"$ref": "#/$defs/a~1b~0c"}},
        {"const": {"$ref": "#/not/a/reference"}},
        {"properties": {"const": {"$ref": "#/properties/enum"}, "enum": {}}},
        {"$schema": "urn:another-dialect", "type": "anything"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]},
    ],
)
def test_valid_schema_has_no_problem(schema: Any) -> None:
    parse_schema(build_json_schema(schema))


def test_reference_in_a_property_named_like_a_keyword_is_checked() -> None:
    problems = list_problems(build_json_schema({"properties": {"enum": {"$ref": "#/x"}}}))
    assert problems == [
        "line 1, column 34, properties.enum.$ref: The reference '#/x' does not refer to a part of this "
        "schema."
    ]


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        (True, {}, ["schema: changed from true to {}"]),
        (
            {"required": ["a", "b"]},
            {"required": ["b", "a"]},
            ["schema: required reordered, without an effect on data"],
        ),
        ({}, {"required": []}, ["schema: required added, without an effect on data"]),
        ({}, {"required": ["a"]}, ["property 'a' is now required, but is not declared"]),
        ({"enum": [1]}, {"enum": [True]}, ["schema: enum value 1 removed", "schema: enum value true added"]),
        ({"enum": [1]}, {}, ["schema: enum [1] removed"]),
        ({"const": 1}, {"const": True}, ["schema: const changed from 1 to true"]),
        ({}, {"properties": {}}, ["schema: empty properties added"]),
        ({"items": {}}, {"items": [{}]}, ["schema: items changed from {} to [{}]"]),
        (
            {"items": [{}]},
            {"items": [{"type": "null"}]},
            ["items[0] of schema: type changed from any type to null"],
        ),
        (
            {"allOf": [{}]},
            {"allOf": [{}, {"minimum": 1}]},
            ['schema: allOf changed from [{}] to [{}, {"minimum": 1}]'],
        ),
        (
            {"additionalProperties": {"type": "string"}},
            {"additionalProperties": {"type": "integer"}},
            ["additionalProperties of schema: type changed from string to integer"],
        ),
        (
            {"not": {"description": "a"}},
            {"not": {"description": "b"}},
            ['not of schema: description changed from "a" to "b"'],
        ),
        (
            {"dependentSchemas": {"a": {"minimum": 1}}},
            {"dependentSchemas": {"a": {"minimum": 2}}},
            ["schema that depends on 'a': minimum changed from 1 to 2"],
        ),
        (
            {"properties": {"a": {"properties": {"b": {"type": "string"}}}}},
            {"properties": {"a": {"properties": {"b": {"$ref": "#"}}}}},
            [
                "property 'a.b': type changed from string to #",
                "property 'a.b': $ref \"#\" added",
            ],
        ),
    ],
)
def test_difference_is_described(before: Any, after: Any, messages: list[str]) -> None:
    assert list_messages(build_json_schema(before), build_json_schema(after)) == messages


def test_description_is_documentation() -> None:
    before = build_json_schema({"title": "A", "description": "a"})
    after = build_json_schema({"title": "A", "examples": [1]})
    assert classify_differences(describe_differences(before, after)) is DifferenceScope.DOCUMENTATION


@pytest.mark.parametrize("count", [190, 250, 5_000, 200_000])
def test_deeply_nested_schema_is_valid_or_a_problem(count: int) -> None:
    content = build_json_schema('{"items": ' * count + "{}" + "}" * count)
    if count < 200:
        parse_schema(content)
        changed = build_json_schema(content.text.replace("{}", '{"title": "T"}'))
        assert [difference.path for difference in describe_differences(content, changed)] == [
            "$" + "[]" * count
        ]
    else:
        assert list_problems(content) == ["The schema has more than 200 levels of nested arrays and objects."]


def test_title_is_content() -> None:
    differences = describe_differences(build_json_schema({"title": "A"}), build_json_schema({"title": "B"}))
    assert classify_differences(differences) is DifferenceScope.CONTENT


def _build_values() -> st.SearchStrategy[Any]:
    return st.sampled_from([None, True, False, 0, 1, -1.5, "", "text", "ü", [], [1, "a"], {}, {"a": None}])


@st.composite
def build_schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """A JSON Schema without references."""
    schema: dict[str, Any] = {}
    for keyword in draw(
        st.sets(st.sampled_from(["type", "title", "description", "default", "const", "minimum"]))
    ):
        schema[keyword] = {
            "type": st.sampled_from(["string", "integer", ["string", "null"]]),
            "title": st.sampled_from(["A", "B"]),
            "description": st.sampled_from(["a", "b"]),
            "default": _build_values(),
            "const": _build_values(),
            "minimum": st.sampled_from([0, 1, 2.5]),
        }[keyword]
        schema[keyword] = draw(schema[keyword])
    if draw(st.booleans()):
        schema["enum"] = draw(st.lists(st.sampled_from(["A", "B", 1]), min_size=1, unique=True))
    if draw(st.booleans()):
        schema["required"] = draw(st.lists(st.sampled_from(["a", "b"]), unique=True))
    if depth > 0:
        nested = build_schemas(depth=depth - 1)
        if draw(st.booleans()):
            schema["properties"] = draw(st.dictionaries(st.sampled_from(["a", "b"]), nested))
        if draw(st.booleans()):
            schema["items"] = draw(st.one_of(nested, st.booleans(), st.lists(nested, min_size=1, max_size=2)))
        if draw(st.booleans()):
            schema["anyOf"] = draw(st.lists(nested, min_size=1, max_size=2))
        if draw(st.booleans()):
            schema["$defs"] = draw(st.dictionaries(st.sampled_from(["D", "E"]), nested))
    return schema


def write_schema(draw: Draw, schema: Any) -> str:
    """Write a schema in a layout that is drawn."""

    def shuffle(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffle(value[key]) for key in draw(st.permutations(sorted(value)))}
        return [shuffle(item) for item in value] if isinstance(value, list) else value

    indent = draw(st.sampled_from([None, 0, 2]))
    return json.dumps(shuffle(schema), indent=indent, ensure_ascii=draw(st.booleans()))


def edit_schema(draw: Draw, schema: Any) -> Any:
    """Return a copy of a schema with one change."""
    result = deepcopy(schema)
    node = draw(st.sampled_from(list(_list_nodes(result))))
    keyword = draw(
        st.sampled_from(["title", "minimum", "x-custom", "required", "enum", "properties", "type"])
    )
    if keyword in node and draw(st.booleans()):
        del node[keyword]
    elif keyword in ("required", "enum"):
        node[keyword] = [*node.get(keyword, []), "added"]
    elif keyword == "properties":
        node[keyword] = {
            **node.get(keyword, {}),
            "added": draw(st.sampled_from([True, {}, {"type": "null"}])),
        }
    elif keyword == "type":
        node[keyword] = "number"
    else:
        node[keyword] = "added" if keyword == "title" else draw(st.sampled_from([7, 8.5]))
    return result


def _list_nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for keyword in ("properties", "$defs"):
            for child in value.get(keyword, {}).values():
                yield from _list_nodes(child)
        for child in (value.get("items"), *value.get("anyOf", [])):
            yield from _list_nodes(child)


@given(st.data(), build_schemas())
def test_other_layout_is_the_same_schema(data: st.DataObject, schema: Any) -> None:
    first, second = (build_json_schema(write_schema(data.draw, schema)) for _ in range(2))
    parsed = parse_schema(first)
    assert parse_schema(build_json_schema("\n".join(format_layout(parsed)))) == parsed
    assert is_same_schema(first, second)
    assert compute_schema_fingerprint(first) == compute_schema_fingerprint(second)
    assert describe_differences(first, second) == ()
    assert not diff_schema_texts(first, second).has_changes


@pytest.mark.slow
@given(st.data(), build_schemas())
def test_edit_makes_another_schema_with_described_differences(data: st.DataObject, schema: Any) -> None:
    first = build_json_schema(write_schema(data.draw, schema))
    second = build_json_schema(write_schema(data.draw, edit_schema(data.draw, schema)))
    differences = describe_differences(first, second)
    assert not is_same_schema(first, second)
    assert compute_schema_fingerprint(first) != compute_schema_fingerprint(second)
    assert differences
    assert DifferenceKind.TEXT_CHANGED not in {difference.kind for difference in differences}
    assert diff_schema_texts(first, second).has_changes


@pytest.mark.slow
@given(build_schemas(), build_schemas())
def test_two_schemas_are_the_same_if_nothing_differs(one: Any, other: Any) -> None:
    first, second = build_json_schema(one), build_json_schema(other)
    differences = describe_differences(first, second)
    assert is_same_schema(first, second) == (not differences)
    assert (compute_schema_fingerprint(first) == compute_schema_fingerprint(second)) == (not differences)
    assert DifferenceKind.TEXT_CHANGED not in {difference.kind for difference in differences}
