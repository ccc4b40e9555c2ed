"""Parse and compare Protobuf schemas: single cases, and properties of generated schemas."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.schema_registry.schemas.comparison import (
    compute_schema_fingerprint,
    describe_differences,
    is_same_schema,
)
from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.problems import SchemaError
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import ProtobufFile
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_parse import parse_protobuf
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_tokens import split_tokens
from kdeclare.providers.schema_registry.schemas.text_diff import diff_schema_texts
from tests.unit.report.golden_files import check_golden
from tests.unit.schemas.contents import build_protobuf, list_messages, list_problems, render_differences
from tests.unit.schemas.protobuf_schemas import build_protobuf_files, edit_protobuf, write_protobuf

OLD = """
syntax = "proto3";
package x;
message Order {
  string id = 1;
  Kind kind = 2;
  repeated Line items = 3;
  int32 gone = 4;
  string old = 5;
  int32 reserved_later = 6;
  int32 choice = 9;
  message Line { int32 price = 1; map<string, Kind> kinds = 2; }
}
enum Kind { A = 0; B = 1; E = 4; }
service Orders { rpc Get(Order) returns (Order); }
"""
NEW = """
syntax = "proto3";
package x;
import "google/protobuf/timestamp.proto";
option java_package = "org.x";
message Extra {}
message Order {
  int64 id = 1;
  x.Kind kind = 2 [deprecated = true];
  repeated .x.Order.Line items = 7;
  string new = 5;
  oneof either { google.protobuf.Timestamp at = 8; int32 choice = 9; }
  reserved 6;
  reserved "reserved_later";
  message Line { optional int32 price = 1; map<string, string> kinds = 2; }
}
enum Kind { A = 0; C = 1; D = 3; E = 5; }
service Orders { rpc Get(Order) returns (stream Order); }
"""
VALID = {
    "comments": "/* a */ message /* b */ A { // c\n optional string a /* d */ = // e\n 1 /* f */ ; } // g",
    "keywords": """message A {
        optional string syntax = 1; optional string message = 2; optional string stream = 3;
        optional .A to = 0x4; optional int32 reserved = 5; optional int32 option = 6;
        optional int32 map = 7; optional int32 enum = 010; optional A.Choice oneof = 9;
        message Choice {} optional int32 group = 10; optional int32 extensions = 11; }
        service rpc { rpc stream (stream A) returns (A) {}; }""",
    "defaults": """message A {
        optional string a = 1 [default = "x" 'y"\\x41\\n'];
        optional double b = 2 [default = -inf]; optional float c = 3 [default = 1.5e3];
        optional int32 d = 4 [default = -0x10]; optional bool e = 5 [default = true];
        optional B f = 6 [default = ONE]; } enum B { ONE = 1; NEGATIVE = -1; }""",
    "group": """message A { optional group G = 1 [deprecated = true] { optional int32 a = 1; }
        oneof o { group H = 2 { optional int32 b = 1; } } optional G again = 3; }""",
    "extensions": """message A { extensions 100 to 199, 500 to max [verification = UNVERIFIED]; }
        extend A { optional int32 x = 100; repeated string y = 0x65; }
        message B { extend A { optional B b = 102; } }""",
    "editions": """edition = "2023";
        message A { reserved foo, bar; string a = 1 [features.field_presence = LEGACY_REQUIRED]; }""",
    "ranges": 'message A { reserved 1, 3 to 5, 1000 to max; reserved "a", "b"; } '
    "enum E { X = 0; reserved -5 to -1, 9; reserved 'Y'; }",
    "aliases": "enum E { option allow_alias = true; A = 0; B = 0; }",
    "scopes": """syntax = "proto3"; package a.b; message X { message Y { Z z = 1; X.Y y = 2; b.X x = 3; }
        message Z {} Y y = 1; a.b.X x = 2; }""",
    "packages": "package a . b; message A { optional a . b . A x = 1; }",
    "empty statements": """syntax = "proto2";; message A {;}; enum E { ; B = 0; ; };
        service S { ; rpc M(A) returns(A); ; }""",
    "late package": 'message A { optional x.A a = 1; } option java_package = "p"; package x;',
    "shadowed names": """syntax = "proto3"; package x;
        message x { .x.x y = 1; message B { message x {} .x.x z = 1; }
        map<string, .x.x> m = 2; }""",
    "groups": """message A { message First {} optional group G = 5 { optional group Inner = 1 {} }
        oneof o { int32 a = 1; group H = 2 {} group I = 3 { optional int32 b = 1; } }
        message Last {} extensions 100 to 200; extend A { optional group X = 100 {} } }
        extend A { optional group Y = 101 { optional A a = 1; } optional int32 z = 102; } message B {}""",
    "byte order mark": "\ufeffmessage A {}",
}
INVALID = {
    "": "The schema defines no message, enum or service.",
    'syntax = "proto3"': "line 1, column 18: Expected ';', but the text ends.",
    f"message A {{ reserved {'9' * 5000}; }}": "line 1, column 22: The number has more than 400 digits.",
    "message A { string = 1; }": "line 1, column 20: Expected the name of a field, not '='.",
    "message A {\n  optional strin a = 1;\n}": "line 2, column 18, A.a: "
    "'A.a' has the type 'strin', which the schema neither defines nor imports.",
    "message A { optional int32 a = 1; optional int32 b = 1; }": "line 1, column 50, A.b: "
    "'A.b' has the same number (1) as the field 'a'.",
    "message A { optional int32 a = 1; optional int32 a = 2; }": "line 1, column 50, A.a: "
    "'A.a' is defined twice.",
    "message A { optional int32 a = 0; }": "line 1, column 28, A.a: "
    "'A.a' has the number 0, but the numbers of fields go from 1 to 536870911.",
    "message A { optional int32 a = 19000; }": "line 1, column 28, A.a: "
    "'A.a' has the number 19000, but 19000 to 19999 are reserved for Protobuf itself.",
    "message A { optional int32 a = 4; reserved 3 to 5; }": "line 1, column 28, A.a: "
    "'A.a' has the reserved number 4.",
    'message A { optional int32 a = 4; reserved "a"; }': "line 1, column 28, A.a: 'A.a' has a reserved name.",
    'syntax = "proto3"; message A { required int32 a = 1; }': "line 1, column 47, A.a: "
    "'A.a' is required, but proto3 has no required fields.",
    'syntax = "proto3"; enum E { A = 1; }': "line 1, column 29, E.A: "
    "'E.A' is the first value of a proto3 enum, so its number must be 0.",
    "enum E { A = 1; B = 1; }": "line 1, column 17, E.B: "
    "'E.B' has the same number (1) as 'A', but allow_alias is not set.",
    "enum E { }": "line 1, column 6, E: 'E' is an enum without values.",
    "message A { map<float, string> a = 1; }": "line 1, column 32, A.a: "
    "'A.a' is a map whose keys have the type float, which Protobuf does not allow.",
    "message A { optional group int32 = 1 {} }": "line 1, column 28: "
    "Expected the name of a group, which starts with a capital letter, not 'int32'.",
    "message A {} message A {}": "line 1, column 22, A: 'A' is defined twice.",
    "message A { $ }": "line 1, column 13: '$' is not expected here.",
    'option a = "b;': "line 1, column 12: The string has no closing quotation mark on the same line.",
    "message A {} /*": "line 1, column 14: The comment is not closed.",
}


def test_differences_match_golden_file() -> None:
    check_golden("schema-differences-protobuf", render_differences(build_protobuf(OLD), build_protobuf(NEW)))


@pytest.mark.parametrize("name", VALID)
def test_valid_schema_is_the_same_in_the_common_layout(name: str) -> None:
    file = parse_protobuf(VALID[name])
    assert parse_protobuf("\n".join(format_layout(file))) == file


@pytest.mark.parametrize("text", INVALID)
def test_invalid_schema_has_problem_with_position(text: str) -> None:
    assert list_problems(build_protobuf(text)) == [INVALID[text]]


@pytest.mark.parametrize(
    "text", ["{" * 5_000, "message A {" * 100, "option a = {a: " * 5_000, "option a = {a:[" * 100]
)
def test_deeply_nested_schema_is_a_problem(text: str) -> None:
    assert len(list_problems(build_protobuf(text))) == 1


def compile_with_protoc(folder: Path, text: str) -> bool:
    """Return whether Protobuf's own compiler accepts a schema."""
    from grpc_tools import protoc

    file = folder / "schema.proto"
    file.write_text(text)
    arguments = ["protoc", f"--proto_path={folder}", f"--descriptor_set_out={folder / 'out'}", str(file)]
    return bool(protoc.main(arguments) == 0)


@pytest.mark.parametrize("name", VALID)
def test_protoc_accepts_valid_schema(name: str, tmp_path: Path) -> None:
    assert compile_with_protoc(tmp_path, VALID[name])


@pytest.mark.parametrize("text", [text for text in INVALID if text])
def test_protoc_rejects_invalid_schema(text: str, tmp_path: Path) -> None:
    assert not compile_with_protoc(tmp_path, text)


def test_values_of_options_are_read() -> None:
    file = parse_protobuf(VALID["defaults"])
    assert [field.options["default"] for field in file.messages[0].fields] == [
        '"xy\\"A\\n"',
        "-inf",
        "1500.0",
        "-16",
        "true",
        "ONE",
    ]


def test_message_in_the_text_format_is_an_option_value() -> None:
    file = parse_protobuf(
        'option (o).a = { a: 1, b { c: "x" "y" } d < e: [1, -2.5] >; [ext.name]: TRUE };'
        "option (o).b = 1; option (o).b = 2; message A {}"
    )
    assert file.options == {
        "(o).a": '{a: 1, b: {c: "xy"}, d: {e: [1, -2.5]}, [ext.name]: TRUE}',
        "(o).b": "1\n2",
    }


def test_types_are_resolved_from_the_innermost_scope() -> None:
    file = parse_protobuf(VALID["scopes"])
    inner, outer = file.messages[0].messages[0], file.messages[0]
    assert [field.type for field in inner.fields] == ["a.b.X.Z", "a.b.X.Y", "a.b.X"]
    assert [field.type for field in outer.fields] == ["a.b.X.Y", "a.b.X"]


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        ("package a; message A { }", "package b; message A { }", ["file: package changed from a to b"]),
        (
            "package a; message A { optional A a = 1; }",
            "package b; message A { optional b.A a = 1; }",
            ["file: package changed from a to b"],
        ),
        (
            "message A {} message B {}",
            "message B {} message A {}",
            ["messages of file: index changed for B, A; records contain this index"],
        ),
        (
            "enum E { A = 1; B = 2; }",
            "enum E { B = 2; A = 1; }",
            ["enum E: values reordered: B, A"],
        ),
        (
            "enum E { A = 1; B = 2; }",
            "enum E { C = 3; A = 1; B = 2; }",
            [
                "enum E: value C added (number 3)",
                "enum E: first value, which is the default, changed to C",
            ],
        ),
        (
            "message A { optional int32 a = 1 [default = 1]; }",
            "message A { optional int32 a = 1 [default = 2]; }",
            ["field 'a' of message A: default changed from 1 to 2"],
        ),
        (
            "message A { oneof o { int32 a = 1; } }",
            "message A { oneof p { int32 a = 1; } }",
            ["field 'a' of message A: oneof changed from o to p"],
        ),
        (
            "message A { optional int32 a = 1; optional int32 b = 2; }",
            "message A { optional int32 a = 2; optional int32 b = 1; }",
            [
                "field 'b' of message A: number changed from 2 to 1",
                "field 'a' of message A: number changed from 1 to 2",
            ],
        ),
        (
            "message A { optional group G = 1 { optional int32 a = 1; } }",
            "message A { optional group G = 1 { optional int64 a = 1; } }",
            ["field 'a' of message A.G: type changed from int32 to int64"],
        ),
        (
            "message A { extensions 100 to 199; } extend A { optional int32 x = 100; }",
            "message A { extensions 100 to 299; } extend A { optional int32 y = 100; }",
            [
                "message A: extension range 100 to 199 removed",
                "message A: extension range 100 to 299 added",
                "field 'x' of extension of A renamed to 'y' (number 100)",
            ],
        ),
        ("message A { }", 'import "a"; message A { }', ["file: import a added"]),
        (
            'import "a"; message A { }',
            'import public "a"; message A { }',
            ["file: import a changed from plain to public"],
        ),
        ("message A { }", 'syntax = "proto2"; message A { }', []),
        ("message A { }", "// Documentation\nmessage A { }", []),
        ("message A { reserved 1, 2; }", "message A { reserved 2; reserved 1; }", []),
        (
            "message A { optional int32 b = 2; optional int32 a = 1; }",
            "message A { optional int32 a = 1; optional int32 b = 0x2; }",
            [],
        ),
    ],
)
def test_difference_is_described(before: str, after: str, messages: list[str]) -> None:
    first, second = build_protobuf(before), build_protobuf(after)
    assert list_messages(first, second) == messages
    assert is_same_schema(first, second) == (not messages)


@given(st.data(), build_protobuf_files())
def test_other_layout_is_the_same_schema(data: st.DataObject, file: ProtobufFile) -> None:
    first, second = (build_protobuf(write_protobuf(data.draw, file)) for _ in range(2))
    assert parse_protobuf(first.text) == file
    assert parse_protobuf("\n".join(format_layout(file))) == file
    assert is_same_schema(first, second)
    assert compute_schema_fingerprint(first) == compute_schema_fingerprint(second)
    assert describe_differences(first, second) == ()
    assert not diff_schema_texts(first, second).has_changes


@given(st.data(), build_protobuf_files())
def test_edit_makes_another_schema_with_described_differences(
    data: st.DataObject, file: ProtobufFile
) -> None:
    first = build_protobuf(write_protobuf(data.draw, file))
    second = build_protobuf(write_protobuf(data.draw, edit_protobuf(data.draw, file)))
    differences = describe_differences(first, second)
    assert not is_same_schema(first, second)
    assert compute_schema_fingerprint(first) != compute_schema_fingerprint(second)
    assert differences
    assert DifferenceKind.TEXT_CHANGED not in {difference.kind for difference in differences}
    assert diff_schema_texts(first, second).has_changes


@given(build_protobuf_files(), build_protobuf_files())
def test_two_schemas_are_the_same_if_nothing_differs(one: ProtobufFile, other: ProtobufFile) -> None:
    first, second = (build_protobuf("\n".join(format_layout(file))) for file in (one, other))
    differences = describe_differences(first, second)
    assert is_same_schema(first, second) == (one == other) == (not differences)
    assert (compute_schema_fingerprint(first) == compute_schema_fingerprint(second)) == (one == other)


@given(st.text(alphabet='message A{}=;"1[]<>/*\n', max_size=60))
def test_any_text_is_a_schema_or_has_a_problem(text: str) -> None:
    with suppress(SchemaError):  # any other error fails the test
        assert parse_protobuf(text).syntax == "proto2"


@given(st.integers(0, 2**32), st.sampled_from([*VALID.values(), OLD, NEW]))
def test_parser_accepts_what_protoc_accepts(
    tmp_path_factory: pytest.TempPathFactory, seed: int, text: str
) -> None:
    chosen = Random(seed)
    words = [token.text for token in split_tokens(text)]
    for _ in range(chosen.randint(1, 2)):
        words[chosen.randrange(len(words))] = chosen.choice(words)
    changed = " ".join(words)
    try:
        file = parse_protobuf(changed)
    except SchemaError:
        assert not compile_with_protoc(tmp_path_factory.mktemp("protoc"), changed)
    else:
        assert parse_protobuf("\n".join(format_layout(file))) == file
