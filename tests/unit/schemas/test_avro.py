"""Parse and compare Avro schemas: single cases."""

from typing import Any

import pytest

from kdeclare.providers.schema_registry.client.port import SchemaReference
from kdeclare.providers.schema_registry.schemas.comparison import (
    describe_differences,
    is_same_schema,
    parse_schema,
)
from kdeclare.providers.schema_registry.schemas.differences import (
    DifferenceKind,
    DifferenceScope,
    classify_differences,
)
from tests.unit.report.golden_files import check_golden
from tests.unit.schemas.contents import build_avro, list_messages, list_problems, render_differences

ORDER = SchemaReference("x.Order", "order", 1)
OLD = {
    "type": "record",
    "namespace": "x",
    "name": "Order",
    "doc": "An order.",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "old", "type": "int"},
        {"name": "gone", "type": "int"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "price", "type": "int", "default": 1},
                        {"name": "parent", "type": ["null", "Order"]},
                        {"name": "at", "type": "long"},
                    ],
                },
            },
        },
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
    ],
}
NEW = {
    "type": "record",
    "name": "x.Order",
    "doc": "An order of a customer.",
    "fields": [
        {"name": "id", "type": "int", "doc": "Unique."},
        {"name": "new", "type": "int", "aliases": ["old"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "C"], "default": "A"}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "parent", "type": ["null", "Order"], "default": None},
                        {"name": "price", "type": ["int", "long"], "default": 2},
                        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                    ],
                },
            },
        },
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 8}},
        {"name": "more", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "bare", "type": "string", "order": "ignore"},
    ],
}


def build_record(*fields: Any, **attributes: Any) -> Any:
    return build_avro({"type": "record", "name": "x.R", "fields": list(fields), **attributes})


def test_differences_match_golden_file() -> None:
    check_golden("schema-differences-avro", render_differences(build_avro(OLD), build_avro(NEW)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1: The text is not valid JSON: Expecting value."),
        ('{\n  "type": }', "line 2, column 11: The text is not valid JSON: Expecting value."),
        ("NaN", "The text contains the invalid number NaN."),
        ('"\\ud800"', "The text contains half of a surrogate pair, which is not a character."),
        ("3", "line 1, column 1: 3 is not a type."),
        ("{}", "line 1, column 1: The object has no attribute 'type'."),
        (
            '"sting"',
            "line 1, column 1: The type 'sting' is not defined before it is used. Did you mean 'string'?",
        ),
        (
            '"array"',
            "line 1, column 1: The type 'array' must be an object with its other attributes, not a name.",
        ),
        ('{"type": "array"}', "line 1, column 1: The type 'array' has no attribute 'items'."),
        ('{"type": "map"}', "line 1, column 1: The type 'map' has no attribute 'values'."),
        ('[["null"]]', "line 1, column 2, [0]: A union cannot directly contain another union."),
        ('["int", "int"]', "line 1, column 9, [1]: The union contains the type 'int' twice."),
        (
            '{"type": "fixed", "name": "F"}',
            "line 1, column 1, size: The type 'fixed' needs a 'size' in bytes.",
        ),
        (
            '{"type": "enum", "name": "E", "symbols": ["A", "A"]}',
            "line 1, column 48, symbols[1]: The enum contains the symbol 'A' twice.",
        ),
        (
            '{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}',
            'line 1, column 60, default: The default "B" is not one of the symbols.',
        ),
        (
            '{"type": "record", "name": "a-b", "fields": []}',
            "line 1, column 28, name: 'a-b' is not a valid name. "
            "A name starts with a letter or _ and contains only letters, digits and _.",
        ),
        ('{"type": "record", "name": "R"}', "line 1, column 1: The record 'R' needs a list of 'fields'."),
        (
            '{"type": "enum", "name": "int", "symbols": []}',
            "line 1, column 26, name: 'int' is the name of a primitive type.",
        ),
    ],
)
def test_invalid_schema_has_problem_with_position(text: str, problem: str) -> None:
    assert list_problems(build_avro(text)) == [problem]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", 2**31),
        ("int", 1.5),
        ("int", True),
        ("long", "1"),
        ("double", "1.0"),
        ("boolean", 0),
        ("string", None),
        ("null", 0),
        (["null", "string"], 1),
        ([], None),
        ({"type": "array", "items": "int"}, [1, "2"]),
        ({"type": "array", "items": "int"}, {}),
        ({"type": "map", "values": "int"}, {"a": None}),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ({"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}, {}),
        ({"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}, {"a": "1"}),
    ],
)
def test_default_of_another_type_is_a_problem(type_: Any, default: Any) -> None:
    problems = list_problems(build_record({"name": "f", "type": type_, "default": default}))
    assert len(problems) == 1
    assert "fields[0].default: " in problems[0]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", -(2**31)),
        ("double", 1),
        ({"type": "double"}, 1),
        (["null", "string"], "second branch"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "\u00ff"),
        ({"type": "record", "name": "S", "fields": [{"name": "a", "type": "int", "default": 1}]}, {}),
        ("x.R", {"f": {"f": None}}),
    ],
)
def test_default_of_the_type_is_valid(type_: Any, default: Any) -> None:
    branches = type_ if isinstance(type_, list) else ["null", type_]
    parse_schema(build_record({"name": "f", "type": branches, "default": default}))


def test_all_problems_are_reported() -> None:
    content = build_record(
        {"name": "a", "type": "strin"},
        {"name": "a", "type": "int"},
        {"name": "b"},
        {"name": "c", "type": "int", "order": "up"},
        "d",
        {"name": "e", "type": "int", "doc": 1, "aliases": "f"},
    )
    assert [problem.split(", ", 2)[2] for problem in list_problems(content)] == [
        "fields[0].type: The type 'x.strin' is not defined before it is used. Did you mean 'string'?",
        "fields[1].name: The record contains the field 'a' twice.",
        "fields[2]: The field has no attribute 'type'.",
        "fields[3].order: The order must be one of ascending, descending, ignore.",
        "fields[4]: A field must be an object.",
        "fields[5].doc: The documentation must be a string.",
        "fields[5].aliases: Aliases must be a list of names.",
    ]


def test_type_defined_twice_is_a_problem() -> None:
    enum = {"type": "enum", "name": "E", "symbols": []}
    problems = list_problems(build_record({"name": "a", "type": enum}, {"name": "b", "type": enum}))
    assert problems[0].endswith("fields[1].type.name: The type 'x.E' is defined twice.")


@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"type":', "}"), ('{"type":"array","items":', "}")]
)
@pytest.mark.parametrize("count", [250, 5_000, 200_000])
def test_deeply_nested_schema_is_a_problem(opening: str, closing: str, count: int) -> None:
    text = opening * count + '"int"' + closing * count
    assert list_problems(build_avro(text)) == [
        "The schema has more than 200 levels of nested arrays and objects."
    ]


def test_nested_schema_up_to_the_limit_is_compared() -> None:
    text = '{"type":"array","items":' * 200 + '"int"' + "}" * 200
    before, after = build_avro(text), build_avro(text.replace('"int"', '"long"'))
    assert is_same_schema(before, build_avro(text.replace(":", " : ")))
    assert [difference.path for difference in describe_differences(before, after)] == ["array" + "[]" * 200]


def test_unknown_name_may_belong_to_a_reference() -> None:
    content = build_avro({"type": "array", "items": "x.Other"}, ORDER)
    parse_schema(content)


def test_unknown_name_is_a_problem_if_all_references_are_known() -> None:
    order = build_avro({"type": "record", "name": "x.Order", "fields": []})
    parse_schema(build_avro({"type": "array", "items": "x.Order"}, ORDER), {"x.Order": order})
    problems = list_problems(build_avro({"type": "array", "items": "x.Ordr"}, ORDER), {"x.Order": order})
    assert problems[0].endswith("The type 'x.Ordr' is not defined before it is used. Did you mean 'x.Order'?")


def test_nested_type_of_a_dependency_is_known() -> None:
    line = {"type": "record", "name": "Line", "fields": []}
    order = build_avro({"type": "record", "name": "x.Order", "fields": [{"name": "l", "type": line}]})
    parse_schema(build_avro({"type": "array", "items": "x.Line"}, ORDER), {"x.Order": order})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"doc": "a"}, {"doc": "b"}),
        ({}, {"doc": ""}),
        ({}, {"aliases": []}),
        ({"my": True}, {"my": 1}),
        ({"my": 0.0}, {"my": -0.0}),
        ({"my": None}, {}),
    ],
)
def test_attributes_that_differ_make_another_schema(before: Any, after: Any) -> None:
    first, second = build_record(**before), build_record(**after)
    assert not is_same_schema(first, second)
    assert len(describe_differences(first, second)) == 1


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("100", "1e2"), ("0.1", "0.10")])
def test_notation_of_a_number_makes_no_difference(one: str, other: str) -> None:
    template = '{"type": "record", "name": "R", "fields": [{"name": "f", "type": "double", "default": %s}]}'
    assert is_same_schema(build_avro(template % one), build_avro(template % other))


def test_documentation_is_told_from_content() -> None:
    plain, documented = build_record(), build_record(doc="d")
    changed = build_record({"name": "f", "type": "int"}, doc="d")
    assert classify_differences(describe_differences(plain, plain)) is DifferenceScope.NONE
    assert classify_differences(describe_differences(plain, documented)) is DifferenceScope.DOCUMENTATION
    assert classify_differences(describe_differences(plain, changed)) is DifferenceScope.CONTENT


def test_renamed_record_is_one_difference() -> None:
    fields = [{"name": "self", "type": ["null", "x.R"]}]
    before = build_record(*fields)
    after = build_avro(
        {
            "type": "record",
            "name": "x.S",
            "aliases": ["R"],
            "fields": [{"name": "self", "type": ["null", "x.S"]}],
        }
    )
    messages = list_messages(before, after)
    assert messages[0] == "record x.R renamed to x.S, which keeps the old name as an alias"


def test_type_changed_to_another_existing_record_is_no_renaming() -> None:
    one = {"type": "record", "name": "A", "fields": []}
    other = {"type": "record", "name": "B", "fields": []}
    before = build_record(
        {"name": "a", "type": one}, {"name": "b", "type": other}, {"name": "c", "type": "A"}
    )
    after = build_record({"name": "a", "type": one}, {"name": "b", "type": other}, {"name": "c", "type": "B"})
    assert list_messages(before, after) == ["field 'c' of record x.R: type changed from x.A to x.B"]


def test_type_that_moves_to_a_reference_is_a_difference() -> None:
    order = {"type": "record", "name": "Order", "fields": []}
    before = build_record({"name": "a", "type": order})
    after = build_avro({"type": "record", "name": "x.R", "fields": [{"name": "a", "type": "Order"}]}, ORDER)
    assert list_messages(before, after) == [
        "reference x.Order added (subject order, version 1)",
        "field 'a' of record x.R: type changed from record x.Order to x.Order of a reference",
    ]


def test_version_of_a_reference_is_a_difference() -> None:
    before = build_avro({"type": "array", "items": "x.Order"}, ORDER)
    after = build_avro({"type": "array", "items": "x.Order"}, SchemaReference("x.Order", "order", 2))
    assert not is_same_schema(before, after)
    assert list_messages(before, after) == [
        "reference x.Order: changed from subject order, version 1 to subject order, version 2"
    ]


def test_invalid_text_is_the_same_only_as_itself() -> None:
    invalid, valid = build_avro("{"), build_avro('"int"')
    assert is_same_schema(invalid, build_avro("{"))
    assert not is_same_schema(invalid, build_avro("{ "))
    assert list_messages(invalid, valid) == ["schema: text changed; the old text is not a valid schema"]
    assert [d.kind for d in describe_differences(valid, invalid)] == [DifferenceKind.TEXT_CHANGED]
