"""Schemas on the command line: plans in words, import, policies, doctor, and files with schemas."""

import json
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.jsontypes import hash_json
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import (
    UNREACHABLE,
    CompatibilityLevel,
    Mode,
    SchemaContent,
    SchemaReference,
    SchemaType,
)
from kdeclare.providers.schema_registry.testing import MemoryRegistry
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_golden
from tests.unit.schemas.conftest import write_project, write_schema

ID = {"name": "id", "type": "string"}
SIZE = {"name": "size", "type": "long", "default": 0, "doc": "The number of items."}
ORDER = {"type": "record", "name": "x.Order", "fields": [ID]}
ORDER_WITH_SIZE = {**ORDER, "fields": [ID, SIZE]}


def apply(kdeclare: CommandLine, *options: str) -> None:
    ran = kdeclare("apply", "--yes", *options)
    assert ran.code == ExitCode.OK, ran


# plans


def test_plan_says_in_words_how_a_schema_changes(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    write_schema(kdeclare, ORDER)
    apply(kdeclare)
    write_schema(kdeclare, {**ORDER, "fields": [{**ID, "type": "bytes"}, SIZE]}, compatibility="BACKWARD")
    ran = kdeclare("plan")
    assert ran.code == ExitCode.OK, ran
    lines = [line.strip() for line in ran.out.splitlines()]
    assert "schema.Order.id (type-changed) string → bytes" in [" ".join(line.split()) for line in lines]
    start = lines.index("Schema changes:")
    assert lines[start + 1 : start + 4] == [
        "Schema/order (subject order in registry main)",
        "field 'id' of record x.Order: type changed from string to bytes",
        "+ field 'size' of record x.Order added (long, with a default)",
    ]
    assert "subject  order in registry main" in ran.out


def read_documents(kdeclare: CommandLine) -> tuple[str, str, dict[str, Any]]:
    """Return the page, the comment and the JSON document of a plan."""
    texts = [kdeclare("plan", "--format", name).out for name in ("html", "markdown", "json")]
    return texts[0], texts[1], json.loads(texts[2])


def normalize_page(page: str) -> str:
    """Return the sections of a page."""
    start = page.index('id="sections">')
    return page[page.rindex("<div", 0, start) : page.index('<section class="panel" id="moves-panel"')]


def test_pages_and_comments_show_the_schema_before_and_after(
    kdeclare: CommandLine, registry: MemoryRegistry
) -> None:
    more = [{"name": f"field{n}", "type": ["null", "string"], "doc": "A text. " * 9} for n in range(9)]
    write_schema(kdeclare, {**ORDER, "fields": [ID, *more]})
    apply(kdeclare)
    write_schema(kdeclare, {**ORDER, "fields": [{**ID, "type": "bytes"}, *more, SIZE]})
    page, comment, document = read_documents(kdeclare)
    check_golden("schema-plan-sections", normalize_page(page), "html")
    check_golden("schema-plan-comment", comment[: comment.index("### Changes")], "md")
    (operation,) = document["operations"]
    assert json.loads(operation["args"]["before"]["text"])["fields"][0] == ID
    assert json.loads(operation["args"]["content"]["text"])["fields"][-1] == SIZE
    assert "blocked_operations" not in document


@pytest.mark.slow
@pytest.mark.parametrize(
    "cause", ["schema-incompatible", "schema-older-version", "adopt", "policy-violation"]
)
def test_blocked_schemas_are_shown_before_and_after(
    kdeclare: CommandLine, registry: MemoryRegistry, cause: str
) -> None:
    """A reviewer wants to see what is wrong with a schema that the plan does not register."""
    if cause == "adopt":
        registry.elsewhere().register("order", SchemaContent(SchemaType.AVRO, json.dumps(ORDER)))
    else:
        write_schema(kdeclare, ORDER, compatibility="BACKWARD")
        apply(kdeclare)
    changed: dict[str, Any] = {**ORDER, "fields": [{**ID, "type": "int"}, SIZE]}
    if cause == "schema-older-version":
        write_schema(kdeclare, ORDER_WITH_SIZE, compatibility="BACKWARD")
        apply(kdeclare)
        changed = ORDER
    elif cause == "policy-violation":
        use_policy(kdeclare, "AllowedTypes", allowed=["PROTOBUF"])
        changed = ORDER_WITH_SIZE
    write_schema(kdeclare, changed, compatibility="BACKWARD")
    text = kdeclare("plan")
    assert text.code in (ExitCode.ERROR, ExitCode.DENIED), text
    assert "BLOCKED" in text.out
    assert "\nSchema changes:" not in text.out
    words = text.out[text.out.index("Blocked schema changes:") :]
    assert "field 'size' of record x.Order" in words
    page, comment, document = read_documents(kdeclare)
    assert "Blocked schema changes</h2>" in page
    assert '<details class="texts" open><summary>Schema/order: ' in page
    assert "### Blocked schema changes\n" in comment
    assert "```diff\n" in comment
    assert document["operations"] == []
    (operation,) = document["blocked_operations"]
    assert operation["verb"] == "schema.register"
    assert json.loads(operation["args"]["content"]["text"]) == changed


def test_rollback_says_in_words_how_a_schema_changes_back(
    kdeclare: CommandLine, registry: MemoryRegistry
) -> None:
    for schema in (ORDER, ORDER_WITH_SIZE):
        write_schema(kdeclare, schema)
        apply(kdeclare)
    ran = kdeclare("rollback", "--yes")
    assert "Schema changes:\n" in ran.out
    assert "- field 'size' of record x.Order removed (long)" in ran.out


def test_saved_plan_shows_blocked_schemas(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    registry.elsewhere().register("order", SchemaContent(SchemaType.AVRO, json.dumps(ORDER)))
    write_schema(kdeclare, {**ORDER, "fields": [{**ID, "type": "int"}]})
    assert kdeclare("plan", "--out", "plan.json").code == ExitCode.DENIED
    shown = kdeclare("show", "plan.json")
    assert "Blocked schema changes:\n" in shown.out
    file = kdeclare.folder / "plan.json"
    text = file.read_text()
    document = json.loads(text)
    document["blocked_operations"][0]["args"]["content"]["text"] = json.dumps(ORDER_WITH_SIZE)
    write_forged(file, document)
    ran = kdeclare("show", "plan.json")
    assert ran.code == ExitCode.ERROR, ran
    assert "its operations change schema, but the plan does not show this change" in ran.err
    document = json.loads(text)
    document["blocked_operations"][0]["resource"] = "Schema/other"
    write_forged(file, document)
    assert "is listed as blocked, but Schema/other is not blocked" in kdeclare("show", "plan.json").err


def write_forged(file: Path, document: dict[str, Any]) -> None:
    """Write a plan with the id that matches its content."""
    unhashed = ("plan_id", "created_at", "signature", "observations")
    hashed = {key: value for key, value in document.items() if key not in unhashed}
    file.write_text(json.dumps({**document, "plan_id": hash_json(hashed)}))


def test_plan_file_is_applied(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    write_schema(kdeclare, ORDER, compatibility="FULL")
    apply(kdeclare)
    write_schema(kdeclare, {**ORDER_WITH_SIZE, "doc": "An order."}, compatibility="BACKWARD")
    assert kdeclare("plan", "--out", "plan.json").code == ExitCode.OK
    shown = kdeclare("show", "plan.json")
    assert "schema.Order.size (field-added)" in shown.out
    apply(kdeclare, "plan.json")
    assert registry.list_versions("order") == (1, 2)
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.OK


@pytest.mark.parametrize("argument", ["content", "before"])
def test_forged_plan_file_is_refused(kdeclare: CommandLine, registry: MemoryRegistry, argument: str) -> None:
    """A plan must show the schema that it registers, and the schema that it replaces."""
    write_schema(kdeclare, ORDER)
    apply(kdeclare)
    write_schema(kdeclare, ORDER_WITH_SIZE)
    assert kdeclare("plan", "--out", "plan.json").code == ExitCode.OK
    file = kdeclare.folder / "plan.json"
    document = json.loads(file.read_text())
    document["operations"][0]["args"][argument]["text"] = json.dumps({**ORDER, "fields": []})
    write_forged(file, document)
    ran = kdeclare("apply", "plan.json", "--yes")
    assert ran.code == ExitCode.ERROR, ran
    assert "plan" in ran.err
    assert registry.list_versions("order") == (1,)


# files


def test_schema_file_is_registered_and_problems_are_located(
    kdeclare: CommandLine, registry: MemoryRegistry
) -> None:
    file = kdeclare.folder / "manifests" / "order.avsc"
    file.write_text(json.dumps(ORDER))
    (kdeclare.folder / "manifests" / "order.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Schema\nmetadata: {name: order}\n"
        "spec: {file: order.avsc, compatibility: BACKWARD}\n"
    )
    apply(kdeclare)
    file.write_text(json.dumps({**ORDER, "fields": [{**ID, "type": "int"}]}))
    ran = kdeclare("plan", "--format", "json")
    assert ran.code == ExitCode.ERROR
    (problem,) = (one for one in json.loads(ran.out)["diagnostics"] if one["severity"] == "error")
    assert problem["code"] == "schema-incompatible"
    assert problem["place"]["file"].endswith("manifests/order.avsc")
    file.write_text('{"type": "record"}')
    ran = kdeclare("validate")
    assert ran.code == ExitCode.ERROR
    assert "order.avsc:1:1" in ran.out + ran.err


# import


def test_imported_manifests_match_live_schemas(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    other = registry.elsewhere()
    other.register("order", SchemaContent(SchemaType.AVRO, json.dumps(ORDER)))
    user = {"type": "record", "name": "x.User", "fields": [{"name": "order", "type": "x.Order"}]}
    reference = SchemaReference("x.Order", "order", 1)
    other.register("user", SchemaContent(SchemaType.AVRO, json.dumps(user), (reference,)))
    proto = 'syntax = "proto3";\n\n// An item, for ${env.X}.\nmessage Item {\n  string id = 1;\n}\n'
    other.register("items/ä b", SchemaContent(SchemaType.PROTOBUF, proto))
    other.register("flag", SchemaContent(SchemaType.JSON, '{"type":"boolean"}'))
    other.register("text", SchemaContent(SchemaType.AVRO, '"string"'))
    other.set_level("user", CompatibilityLevel.FULL)
    ran = kdeclare("import", "--out", "manifests")
    assert ran.code == ExitCode.OK, ran
    plan = kdeclare("plan", "--detailed-exitcode")
    assert plan.code == ExitCode.OK, plan
    assert plan.out.startswith("No changes."), plan
    apply(kdeclare)
    assert registry.writes == []


# policies


def use_policy(kdeclare: CommandLine, name: str, **config: object) -> None:
    entry = {
        "name": "rule",
        "class": f"kdeclare.providers.schema_registry.schema_policies:{name}",
        "selector": {"kind": "Schema"},
        **({"config": config} if config else {}),
    }
    write_project(kdeclare, policies=[entry])


def expect_denial(kdeclare: CommandLine, message: str) -> None:
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED, ran
    assert message in " ".join(ran.out.split())


def test_policy_requires_documentation(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    use_policy(kdeclare, "RequiredDocumentation")
    write_schema(kdeclare, ORDER_WITH_SIZE)
    expect_denial(kdeclare, "The schema has no documentation for x.Order, x.Order.id.")
    write_schema(kdeclare, {**ORDER, "doc": "An order.", "fields": [{**ID, "doc": "The id."}]})
    assert kdeclare("plan").code == ExitCode.OK
    proto = 'syntax = "proto3";\n// An order.\nmessage Order {\n  string id = 1;\n}\n'
    write_schema(kdeclare, proto, type="PROTOBUF")
    expect_denial(kdeclare, "The schema has no documentation for Order.id.")


def test_policy_requires_a_level(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    use_policy(kdeclare, "RequiredCompatibility", minimum="BACKWARD")
    write_schema(kdeclare, ORDER)
    expect_denial(kdeclare, "Declare 'compatibility: BACKWARD'.")
    write_schema(kdeclare, ORDER, compatibility="FORWARD")
    expect_denial(kdeclare, "The compatibility level is FORWARD, but at least BACKWARD is required.")
    write_schema(kdeclare, ORDER, compatibility="FULL_TRANSITIVE")
    apply(kdeclare)
    write_schema(kdeclare, ORDER, compatibility="NONE")
    expect_denial(kdeclare, "The compatibility level is NONE")


def test_policy_allows_certain_types(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    use_policy(kdeclare, "AllowedTypes", allowed=["AVRO"])
    write_schema(kdeclare, {"type": "boolean"}, type="JSON")
    expect_denial(kdeclare, "The schema type is JSON instead of AVRO.")


@pytest.mark.parametrize(("rule", "code"), [("order", ExitCode.OK), ("pay", ExitCode.DENIED)])
def test_rule_can_use_fields_of_schemas(
    kdeclare: CommandLine, registry: MemoryRegistry, rule: str, code: ExitCode
) -> None:
    kdeclare.write(
        "manifests/rule.yaml",
        "Policy",
        "names",
        selector={"kind": "Schema"},
        actions=["CREATE", "MODIFY"],
        rule=f"after.subject.startsWith('{rule}') && after.type == 'AVRO'",
        message="Subjects have a prefix.",
    )
    write_schema(kdeclare, ORDER)
    assert kdeclare("plan").code == code


# doctor


def read_checks(kdeclare: CommandLine) -> dict[str, tuple[str, str]]:
    document = json.loads(kdeclare("doctor", "--format", "json").out)
    return {
        check["name"]: (check["standing"], check["what"])
        for check in document["checks"]
        if check["section"] == "Schema registries"
    }


@pytest.mark.slow
def test_doctor_checks_registries(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    registry.elsewhere().register("order", SchemaContent(SchemaType.AVRO, '"string"'))
    assert read_checks(kdeclare) == {
        "registries/main": ("ok", "responds, with version memory, level BACKWARD and 1 subject")
    }
    registry.set_mode(Mode.READONLY)
    assert read_checks(kdeclare)["registries/main mode"] == (
        "warning",
        "is READONLY, so no schema can be registered",
    )


def test_doctor_reports_missing_and_unreachable_registries(
    kdeclare: CommandLine, registry: MemoryRegistry
) -> None:
    write_schema(kdeclare, ORDER, registry="eu")
    registry.faults.fail(Fault(UNREACHABLE, "it is unreachable"), method="identify", nth=None)
    assert read_checks(kdeclare) == {
        "registries/eu": ("failed", "The environment has no endpoint 'eu' under 'registries'"),
        "registries/main": ("failed", "it is unreachable"),
    }
