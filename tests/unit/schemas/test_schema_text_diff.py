"""Compare schemas line by line."""

from kdeclare.core.line_diff import DiffRow, LineChange, LineDiff
from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.text_diff import diff_schema_texts
from tests.unit.report.golden_files import check_golden
from tests.unit.schemas.contents import build_avro, build_json_schema, build_protobuf
from tests.unit.schemas.test_avro import NEW, OLD
from tests.unit.schemas.test_protobuf import NEW as NEW_PROTOBUF
from tests.unit.schemas.test_protobuf import OLD as OLD_PROTOBUF

_MARKS = {
    LineChange.EQUAL: " ",
    LineChange.CHANGED: "~",
    LineChange.ADDED: "+",
    LineChange.REMOVED: "-",
    LineChange.SKIPPED: "…",
}


def render_row(row: DiffRow) -> str:
    before = f"{row.before.number:3} {row.before.text}" if row.before else ""
    after = f"{row.after.number:3} {row.after.text}" if row.after else ""
    skipped = f"{row.skipped_count} equal lines" if row.skipped_count else ""
    return f"{_MARKS[row.change]} {before or skipped:90}|{after}".rstrip() + "\n"


def render_diff(diff: LineDiff) -> str:
    return "".join(map(render_row, diff.rows))


def test_side_by_side_matches_golden_files() -> None:
    check_golden("schema-side-by-side-avro", render_diff(diff_schema_texts(build_avro(OLD), build_avro(NEW))))
    diff = diff_schema_texts(build_protobuf(OLD_PROTOBUF), build_protobuf(NEW_PROTOBUF))
    check_golden("schema-side-by-side-protobuf", render_diff(diff))


def test_layout_sorts_keys_and_breaks_long_values() -> None:
    content = build_json_schema(
        {
            "required": ["name of a property"],
            "type": "object",
            "properties": {"name of a property": {"type": "string", "description": "What it is."}},
            "title": "ü",
        }
    )
    assert format_layout(parse_schema(content)) == (
        "{",
        '  "type": "object",',
        '  "title": "ü",',
        '  "required": ["name of a property"],',
        '  "properties": {',
        '    "name of a property": {"type": "string", "description": "What it is."}',
        "  }",
        "}",
    )


def test_many_equal_lines_are_equal_and_can_be_skipped() -> None:
    fields = "".join(f"optional int32 f{number} = {number};" for number in range(1, 501))
    before = build_protobuf(f"message A {{ {fields} }}")
    after = build_protobuf(f"message A {{ {fields} optional int32 extra = 501; }}")
    diff = diff_schema_texts(before, after)
    assert [row.change for row in diff.rows].count(LineChange.EQUAL) == len(diff.rows) - 1
    assert [row.change for row in diff.shorten(2).rows] == [
        LineChange.SKIPPED,
        LineChange.EQUAL,
        LineChange.EQUAL,
        LineChange.ADDED,
        LineChange.EQUAL,
    ]
    assert diff.shorten(2).rows[0].skipped_count == len(diff.rows) - 4
    assert diff.shorten(2).has_changes


def test_many_changed_lines_are_shown_in_full() -> None:
    before = build_protobuf("".join(f"message A{number} {{}}" for number in range(200)))
    after = build_protobuf("".join(f"message B{number} {{}}" for number in range(200)))
    diff = diff_schema_texts(before, after)
    assert [row.before.text for row in diff.rows if row.before] == list(format_layout(parse_schema(before)))
    assert [row.after.text for row in diff.rows if row.after] == list(format_layout(parse_schema(after)))


def test_diff_of_equal_schemas_has_no_changes() -> None:
    diff = diff_schema_texts(build_avro('"int"'), build_avro('{"type": "int"}'))
    assert not diff.has_changes
    assert not diff.shorten().has_changes


def test_absent_schema_has_no_lines() -> None:
    assert [row.change for row in diff_schema_texts(None, build_avro('"int"')).rows] == [LineChange.ADDED]
    assert [row.change for row in diff_schema_texts(build_avro('"int"'), None).rows] == [LineChange.REMOVED]


def test_invalid_schema_keeps_its_layout() -> None:
    diff = diff_schema_texts(build_avro("{\n  x"), build_avro('"int"'))
    assert [row.before.text for row in diff.rows if row.before] == ["{", "  x"]
