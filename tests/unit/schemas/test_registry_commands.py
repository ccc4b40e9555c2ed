"""`kdeclare schema-registry` on in-memory registries: list, describe, diff and check."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.http.target import HttpTarget
from kdeclare.providers.schema_registry.client import rest
from kdeclare.providers.schema_registry.client.port import (
    NOT_AUTHORIZED,
    UNREACHABLE,
    CompatibilityLevel,
    Mode,
    SchemaContent,
    SchemaReference,
    SchemaType,
)
from kdeclare.providers.schema_registry.commands.registry_views import build_registry_schemas
from kdeclare.providers.schema_registry.testing import APICURIO, MemoryRegistry
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.report.golden_files import check_golden, check_schema
from tests.unit.schemas.conftest import ENVIRONMENTS, write_project, write_schema

ID: dict[str, JsonValue] = {"name": "id", "type": "string"}
SIZE: dict[str, JsonValue] = {"name": "size", "type": "long", "default": 0}
NOTE: dict[str, JsonValue] = {"name": "note", "type": "string"}
ORDER: dict[str, JsonValue] = {"type": "record", "name": "x.Order", "fields": [ID]}
WITH_SIZE: dict[str, JsonValue] = {**ORDER, "fields": [ID, SIZE]}
WITH_NOTE: dict[str, JsonValue] = {**ORDER, "fields": [ID, NOTE]}
USER: dict[str, JsonValue] = {
    "type": "record",
    "name": "x.User",
    "fields": [{"name": "order", "type": "x.Order"}],
}
SUBJECT = "orders-value"


def build_content(schema: JsonValue, *references: SchemaReference) -> SchemaContent:
    return SchemaContent(SchemaType.AVRO, json.dumps(schema), references)


def register(registry: MemoryRegistry, subject: str, *schemas: JsonValue) -> None:
    """Register schemas as another client, whatever the level."""
    other = registry.elsewhere()
    for schema in schemas:
        level = other.read_global_level()
        other.set_level(None, CompatibilityLevel.NONE)
        other.register(subject, build_content(schema))
        other.set_level(None, level)


def disconnect(registry: MemoryRegistry) -> None:
    for method in ("identify", "list_subjects", "list_versions"):
        registry.faults.fail(Fault(UNREACHABLE, "connection refused"), nth=None, method=method)


@pytest.fixture
def us(kdeclare: CommandLine, registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch) -> MemoryRegistry:
    """A second registry of the project."""
    other = MemoryRegistry()
    urls = {"main": "https://lab:8081", "us": "https://us:8081"}
    registries = {(urls["main"],): registry, (urls["us"],): other}
    monkeypatch.setattr(rest, "open_rest_registry", lambda target, *_: registries[tuple(target.urls)])
    endpoints = {name: {"urls": [url]} for name, url in urls.items()}
    environments = {"lab": {**ENVIRONMENTS["lab"], "registries": endpoints}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments)
    return other


@pytest.fixture
def apicurio(kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch) -> MemoryRegistry:
    """The registry of the project, which behaves like Apicurio Registry."""
    registry = MemoryRegistry(APICURIO)
    monkeypatch.setattr(rest, "open_rest_registry", lambda *_: registry)
    kdeclare.hurry()
    write_project(kdeclare)
    return registry


Run = Callable[..., CommandResult]


@pytest.fixture
def run(kdeclare: CommandLine) -> Run:
    """Run `kdeclare schema-registry`."""
    return lambda *arguments: kdeclare("schema-registry", *map(str, arguments))


def read_document(run: Run, *arguments: object) -> dict[str, JsonValue]:
    """Run a command, and return its document, which matches the published schema."""
    ran = run(*arguments, "--format", "json")
    document: dict[str, JsonValue] = json.loads(ran.out)
    Draft202012Validator(build_registry_schemas()[f"schema-registry-{arguments[0]}"]).validate(document)
    return document


def write_file(kdeclare: CommandLine, schema: JsonValue, name: str = "order.avsc") -> Path:
    file = kdeclare.folder / name
    file.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    return Path(name)


def list_problems(ran: CommandResult) -> list[str]:
    """Return the codes of the diagnostics of a failed command with JSON output."""
    return [problem["code"] for problem in json.loads(ran.out)["diagnostics"]]


@pytest.mark.parametrize("name", build_registry_schemas())
def test_schemas_are_published(name: str) -> None:
    check_schema(name, build_registry_schemas()[name])


# list


def test_list_shows_subjects_of_all_registries(
    kdeclare: CommandLine, registry: MemoryRegistry, us: MemoryRegistry, run: Run
) -> None:
    write_schema(kdeclare, ORDER, "order", registry="main", compatibility="FULL")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    register(us, SUBJECT, ORDER, WITH_SIZE)
    applied = list(registry.writes)
    ran = run("list")
    assert ran.code == ExitCode.OK, ran
    assert [line.split() for line in ran.out.splitlines()] == [
        ["REGISTRY", "SUBJECT", "TYPE", "LATEST", "VERSIONS", "LEVEL", "OWNED"],
        ["main", "order", "AVRO", "1", "1", "FULL", "yes"],
        ["us", SUBJECT, "AVRO", "2", "2", "BACKWARD", "(inherited)", "no"],
    ]
    only = run("list", "--registry", "us")
    assert SUBJECT in only.out
    assert "main" not in only.out
    assert (registry.writes, us.writes) == (applied, [])


def test_list_counts_soft_deleted_versions(registry: MemoryRegistry, run: Run) -> None:
    register(registry, SUBJECT, ORDER, WITH_SIZE)
    register(registry, "old", ORDER)
    other = registry.elsewhere()
    other.delete_version(SUBJECT, 2)
    other.delete_subject("old")
    assert "old" not in run("list").out
    assert [line.split() for line in run("list", "--deleted").out.splitlines()] == [
        ["REGISTRY", "SUBJECT", "TYPE", "LATEST", "VERSIONS", "DELETED", "LEVEL", "OWNED"],
        ["main", "old", "AVRO", "-", "0", "1", "BACKWARD", "(inherited)", "no"],
        ["main", SUBJECT, "AVRO", "1", "1", "1", "BACKWARD", "(inherited)", "no"],
    ]
    subjects = read_document(run, "list", "--deleted")["subjects"]
    assert isinstance(subjects, list)
    assert subjects[0] == {
        "registry": "main",
        "subject": "old",
        "type": "AVRO",
        "latest_version": None,
        "versions": 0,
        "deleted_versions": 1,
        "level": "BACKWARD",
        "level_origin": "inherited",
        "declared_by": None,
        "owned_by": None,
    }


def test_registry_that_does_not_return_soft_deleted_schemas(
    registry: MemoryRegistry, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry can list the numbers of soft-deleted versions without returning their schemas."""
    register(registry, SUBJECT, ORDER)
    registry.elsewhere().delete_subject(SUBJECT)
    monkeypatch.setattr(registry, "read_version", lambda *_, **__: None)
    (line,) = run("list", "--deleted").out.splitlines()[1:]
    assert line.split()[1:6] == [SUBJECT, "-", "-", "0", "1"]
    read_document(run, "list", "--deleted")
    ran = run("describe", SUBJECT)
    assert ran.code == ExitCode.ERROR, ran
    assert "is soft-deleted, and the registry does not return it" in " ".join(ran.err.split())


def test_list_names_unreadable_registry_after_the_others(
    registry: MemoryRegistry, us: MemoryRegistry, run: Run
) -> None:
    register(us, SUBJECT, ORDER)
    disconnect(registry)
    ran = run("list")
    assert ran.code == ExitCode.ERROR, ran
    assert ran.out.splitlines()[-2].startswith("us")
    assert ran.out.splitlines()[-1] == "main: not read: connection refused."
    assert read_document(run, "list")["unreadable"] == [{"registry": "main", "message": "connection refused"}]


def test_list_names_registry_with_unusable_settings(
    kdeclare: CommandLine, registry: MemoryRegistry, us: MemoryRegistry, run: Run
) -> None:
    def open_registry(target: HttpTarget, *_: object) -> MemoryRegistry:
        if "us" in target.urls[0]:
            raise KdeclareError(error("unreadable-file", "File cannot be read", "'ca.pem' does not exist."))
        return registry

    register(registry, SUBJECT, ORDER)
    kdeclare.monkeypatch.setattr(rest, "open_rest_registry", open_registry)
    ran = run("list")
    assert ran.code == ExitCode.ERROR, ran
    assert ran.out.splitlines()[-2].startswith("main")
    assert ran.out.splitlines()[-1] == "us: not read: 'ca.pem' does not exist."


def test_list_does_not_guess_the_origin_of_a_level(apicurio: MemoryRegistry, run: Run) -> None:
    register(apicurio, "a", ORDER)
    register(apicurio, "b", ORDER)
    apicurio.elsewhere().set_level("b", CompatibilityLevel.FULL)
    assert [line.split()[5:-1] for line in run("list").out.splitlines()[1:]] == [
        ["NONE", "(own", "or", "inherited)"],
        ["FULL"],
    ]


def test_list_without_subjects_and_with_unknown_registry(registry: MemoryRegistry, run: Run) -> None:
    assert run("list").out == "No subjects.\n"
    ran = run("list", "--registry", "nowhere", "--format", "json")
    assert (ran.code, list_problems(ran)) == (ExitCode.ERROR, ["endpoint-not-configured"])


def test_commands_without_registry_name_the_setting(kdeclare: CommandLine, run: Run) -> None:
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": {"bootstrapServers": "lab:9092"}})
    for arguments in (["list"], ["describe", "a"]):
        ran = run(*arguments)
        assert ran.code == ExitCode.ERROR, ran
        assert "registries" in ran.err


# describe


def test_describe_shows_a_version(kdeclare: CommandLine, registry: MemoryRegistry, run: Run) -> None:
    write_schema(kdeclare, WITH_SIZE, "order", subject=SUBJECT, compatibility="BACKWARD")
    register(registry, SUBJECT, ORDER)
    assert kdeclare("apply", "--adopt", "--yes").code == ExitCode.OK
    reference = SchemaReference("x.Order", SUBJECT, 2)
    registry.elsewhere().register("user", build_content(USER, reference))
    ran = run("describe", SUBJECT)
    assert ran.code == ExitCode.OK, ran
    check_golden("schema-registry-describe", ran.out)
    document = read_document(run, "describe", "user")
    assert document["references"] == [{"name": "x.Order", "subject": SUBJECT, "version": 2}]
    assert (document["naming"], document["owned_by"], document["level_origin"]) == (None, None, "inherited")
    document = read_document(run, "describe", SUBJECT, "--version", "1")
    assert (document["version"], document["versions"], document["referrers"]) == (1, [1, 2], [])
    assert (document["declared_by"], document["owned_by"]) == ("Schema/order", "Schema/order")


def test_describe_shows_soft_deleted_version(registry: MemoryRegistry, run: Run) -> None:
    register(registry, SUBJECT, ORDER, WITH_SIZE)
    registry.elsewhere().delete_version(SUBJECT, 1)
    document = read_document(run, "describe", SUBJECT, "--version", "1")
    assert (document["deleted"], document["versions"], document["deleted_versions"]) == (True, [2], [1])
    assert "version 1 (id 1, soft-deleted)" in run("describe", SUBJECT, "--version", "1").out
    assert "Versions: 2 (soft-deleted: 1)" in run("describe", SUBJECT).out


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-key", "orders, keys (TopicNameStrategy)"),
        ("x.Order", "any (RecordNameStrategy)"),
        ("eu-orders-x.Order", "eu-orders (TopicRecordNameStrategy)"),
        ("something", "the subject name does not match any subject name strategy"),
    ],
)
def test_describe_names_topic(registry: MemoryRegistry, run: Run, subject: str, topic: str) -> None:
    register(registry, subject, ORDER)
    assert f"  Topic: {topic}\n" in run("describe", subject).out


def test_describe_shows_unparsable_schema_and_missing_referrers(apicurio: MemoryRegistry, run: Run) -> None:
    apicurio.elsewhere().register(SUBJECT, SchemaContent(SchemaType.AVRO, ""))
    apicurio.faults.fail(Fault(NOT_AUTHORIZED, "forbidden"), nth=None, method="list_referrers")
    ran = run("describe", SUBJECT)
    assert ran.code == ExitCode.OK, ran
    assert "Referenced by: not read" in ran.out
    assert read_document(run, "describe", SUBJECT)["referrers"] is None


def test_describe_rejects_unknown_and_ambiguous_subjects(
    registry: MemoryRegistry, us: MemoryRegistry, run: Run
) -> None:
    for one in (registry, us):
        register(one, SUBJECT, ORDER)
    ambiguous = run("describe", SUBJECT)
    assert ambiguous.code == ExitCode.ERROR
    assert "exists in the registries main, us" in ambiguous.err
    assert "--registry" in ambiguous.err
    assert run("describe", SUBJECT, "--registry", "us").code == ExitCode.OK
    unknown = run("describe", "orders-valeu")
    assert unknown.code == ExitCode.ERROR
    assert "Did you mean 'orders-value'?" in unknown.err
    version = run("describe", SUBJECT, "--registry", "us", "--version", "7")
    assert version.code == ExitCode.ERROR
    assert "Use an existing version of the subject: 1." in version.err
    disconnect(us)
    assert list_problems(run("describe", SUBJECT, "--format", "json")) == ["endpoint-unreachable"]


# diff


def test_diff_compares_the_latest_two_versions(registry: MemoryRegistry, run: Run) -> None:
    long_fields: list[JsonValue] = [
        {"name": f"field_{number}", "type": "string", "doc": "x" * 40} for number in range(9)
    ]
    before: JsonValue = {**ORDER, "fields": [ID, *long_fields, NOTE]}
    after: JsonValue = {**ORDER, "fields": [ID, *long_fields, {**NOTE, "type": "bytes"}, SIZE]}
    register(registry, SUBJECT, ORDER, before, after)
    ran = run("diff", SUBJECT)
    assert ran.code == ExitCode.OK, ran
    check_golden("schema-registry-diff", ran.out)
    assert run("diff", SUBJECT, "--detailed-exitcode").code == ExitCode.CHANGES
    assert registry.writes == []


def test_diff_of_versions_is_a_document(registry: MemoryRegistry, run: Run) -> None:
    register(registry, SUBJECT, ORDER, WITH_SIZE, WITH_NOTE)
    document = read_document(run, "diff", SUBJECT, "--from", "1", "--to", "2", "--detailed-exitcode")
    assert (document["exit_code"], document["scope"], document["equal_texts"]) == (2, "content", False)
    assert document["before"] == {"version": 1, "file": None, "type": "AVRO"}
    assert document["after"] == {"version": 2, "file": None, "type": "AVRO"}
    differences = document["differences"]
    assert isinstance(differences, list)
    assert [(one["kind"], one["path"]) for one in differences] == [("field-added", "Order.size")]
    lines = document["lines"]
    assert isinstance(lines, list)
    assert {one["change"] for one in lines} - {"equal"}
    backward = read_document(run, "diff", SUBJECT, "--from", "2", "--to", "1")["differences"]
    assert isinstance(backward, list)
    assert [one["kind"] for one in backward] == ["field-removed"]
    to_only = read_document(run, "diff", SUBJECT, "--to", "2")["before"]
    assert to_only == {"version": 1, "file": None, "type": "AVRO"}


def test_diff_compares_latest_version_with_file(
    kdeclare: CommandLine, registry: MemoryRegistry, run: Run
) -> None:
    register(registry, SUBJECT, ORDER, WITH_SIZE)
    file = write_file(kdeclare, json.dumps(WITH_SIZE, indent=4))
    ran = run("diff", SUBJECT, "--file", file, "--detailed-exitcode")
    assert ran.code == ExitCode.OK, ran
    assert ran.out.splitlines() == [
        "orders-value in registry main: version 2 → order.avsc",
        "No differences, except in the layout of the text.",
    ]
    file = write_file(kdeclare, json.dumps(WITH_SIZE))
    assert run("diff", SUBJECT, "--file", file).out.endswith("\nNo differences.\n")
    file = write_file(kdeclare, {**WITH_SIZE, "doc": "An order."})
    ran = run("diff", SUBJECT, "--file", file, "--detailed-exitcode")
    assert ran.code == ExitCode.CHANGES, ran
    assert "Only the documentation differs:" in ran.out
    ran = run("diff", SUBJECT, "--from", "1", "--file", file)
    assert "version 1 → order.avsc" in ran.out
    assert "+ field 'size' of record x.Order added (long, with a default)" in ran.out


def test_diff_of_soft_deleted_versions(registry: MemoryRegistry, run: Run) -> None:
    register(registry, SUBJECT, ORDER, WITH_SIZE)
    registry.elsewhere().delete_subject(SUBJECT)
    assert "one with --to: 1, 2." in run("diff", SUBJECT).err
    assert run("diff", SUBJECT, "--from", "1", "--to", "2").code == ExitCode.OK


def test_diff_rejects_impossible_requests(kdeclare: CommandLine, registry: MemoryRegistry, run: Run) -> None:
    register(registry, SUBJECT, ORDER)
    file = write_file(kdeclare, ORDER)
    first = run("diff", SUBJECT, "--format", "json")
    assert (first.code, list_problems(first)) == (ExitCode.ERROR, ["no-earlier-version"])
    missing = run("diff", SUBJECT, "--from", "3", "--format", "json")
    assert (missing.code, list_problems(missing)) == (ExitCode.ERROR, ["unknown-version"])
    for arguments in (
        ["--to", "1", "--file", file],
        ["--type", "AVRO"],
        ["--reference", "a=b"],
        ["--from", "0"],
        ["--file", file, "--reference", "a"],
    ):
        assert run("diff", SUBJECT, *arguments).code == ExitCode.USAGE, arguments


# check


def test_check_of_compatible_schema(kdeclare: CommandLine, registry: MemoryRegistry, run: Run) -> None:
    register(registry, SUBJECT, ORDER)
    ran = run("check", write_file(kdeclare, WITH_SIZE), "--subject", SUBJECT)
    assert ran.code == ExitCode.OK, ran
    assert ran.out.splitlines() == [
        "order.avsc as subject orders-value in registry main",
        "  Type: AVRO",
        "  References: none",
        "  Registration: a new version after version 1",
        "  Compatibility: BACKWARD compatible with the latest version",
        "  Differences from version 1:",
        "    + field 'size' of record x.Order added (long, with a default)",
    ]
    assert registry.writes == []


def test_check_of_incompatible_schema_shows_reasons_of_registry(
    kdeclare: CommandLine, registry: MemoryRegistry, run: Run
) -> None:
    register(registry, SUBJECT, ORDER)
    file = write_file(kdeclare, WITH_NOTE)
    ran = run("check", file, "--subject", SUBJECT)
    assert ran.code == ExitCode.ERROR, ran
    (reason,) = registry.elsewhere().check_compatibility(SUBJECT, build_content(WITH_NOTE)).reasons
    start = ran.out.splitlines().index("  Compatibility: not BACKWARD compatible with the latest version")
    assert ran.out.splitlines()[start + 1] == f"    - {reason}"
    document = read_document(run, "check", file, "--subject", SUBJECT)
    assert document["exit_code"] == 1
    assert document["compatibility"] == {
        "result": "incompatible",
        "level": "BACKWARD",
        "current_level": "BACKWARD",
        "reasons": [reason],
    }


def test_check_says_what_a_registration_would_do(
    kdeclare: CommandLine, registry: MemoryRegistry, run: Run
) -> None:
    def predict(schema: JsonValue, subject: str = SUBJECT) -> JsonValue:
        return read_document(run, "check", write_file(kdeclare, schema), "--subject", subject)["registration"]

    register(registry, SUBJECT, ORDER, WITH_SIZE)
    new = {"outcome": "new-version", "version": None, "latest_version": 2, "mode": None}
    assert predict({**WITH_SIZE, "doc": "An order."}) == new
    latest = {"outcome": "latest-version", "version": 2, "latest_version": 2, "mode": None}
    assert predict(json.dumps(WITH_SIZE, indent=3)) == latest
    assert predict(ORDER) == {**latest, "outcome": "older-version", "version": 1}
    assert predict(ORDER, "new") == {
        "outcome": "new-subject",
        "version": None,
        "latest_version": None,
        "mode": None,
    }
    registry.set_mode(Mode.READONLY)
    assert predict(ORDER, "new") == {
        "outcome": "new-subject",
        "version": None,
        "latest_version": None,
        "mode": "READONLY",
    }
    ran = run("check", "order.avsc", "--subject", SUBJECT)
    assert "  Registration: no change; it is version 1, and version 2 remains the latest" in ran.out
    assert "  Mode: READONLY, so the registry accepts no new version" in ran.out
    ran = run("check", "order.avsc", "--subject", "new")
    assert "  Registration: a new subject\n" in ran.out
    assert "  Compatibility: there is no earlier version" in ran.out


def test_check_uses_the_look_up_of_the_registry(
    kdeclare: CommandLine, registry: MemoryRegistry, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry can treat contents as equal that kdeclare distinguishes."""
    register(registry, SUBJECT, ORDER, WITH_SIZE)
    found = registry.elsewhere().read_version(SUBJECT, 1)
    monkeypatch.setattr(registry, "find_version", lambda *_, **__: found)
    file = write_file(kdeclare, {**ORDER, "doc": "An order."})
    registration = read_document(run, "check", file, "--subject", SUBJECT)["registration"]
    assert isinstance(registration, dict)
    assert (registration["outcome"], registration["version"]) == ("older-version", 1)


@pytest.mark.parametrize(
    ("current", "requested", "schema", "result"),
    [
        ("BACKWARD", "FULL", WITH_NOTE, "incompatible"),
        ("BACKWARD", "FULL", WITH_SIZE, "unchecked"),
        ("FULL", "BACKWARD", WITH_SIZE, "compatible"),
        ("FULL", "FORWARD", WITH_NOTE, "unchecked"),
        ("BACKWARD", "BACKWARD_TRANSITIVE", WITH_NOTE, "incompatible"),
        ("BACKWARD", "NONE", WITH_NOTE, "compatible"),
        ("NONE", "BACKWARD", WITH_SIZE, "unchecked"),
    ],
)
def test_check_at_another_level_claims_only_what_the_registry_shows(
    kdeclare: CommandLine,
    registry: MemoryRegistry,
    run: Run,
    current: str,
    requested: str,
    schema: JsonValue,
    result: str,
) -> None:
    register(registry, SUBJECT, ORDER)
    registry.elsewhere().set_level(SUBJECT, CompatibilityLevel(current))
    file = write_file(kdeclare, schema)
    document = read_document(run, "check", file, "--subject", SUBJECT, "--level", requested.lower())
    compatibility = document["compatibility"]
    assert isinstance(compatibility, dict)
    assert (compatibility["result"], compatibility["level"], compatibility["current_level"]) == (
        result,
        requested,
        current,
    )
    assert document["exit_code"] == (1 if result == "incompatible" else 0)


def test_check_reports_positions_of_mistakes(
    kdeclare: CommandLine, registry: MemoryRegistry, run: Run
) -> None:
    file = write_file(kdeclare, '{"type": "record", "name": "x.Order",\n  "fields": [{"name": "id"}]}')
    ran = run("check", file, "--subject", SUBJECT)
    assert ran.code == ExitCode.ERROR, ran
    assert "order.avsc:2:14" in ran.err
    file = write_file(kdeclare, 'syntax = "proto3";\nmessage Order {\n  string id = 0;\n}\n', "order.proto")
    ran = run("check", file, "--subject", SUBJECT, "--format", "json")
    (problem,) = json.loads(ran.out)["diagnostics"]
    assert problem["code"] == "invalid-schema"
    assert problem["place"]["file"] == "order.proto"
    assert problem["place"]["line"] == 3
    assert registry.writes == []


def test_check_reports_schema_that_only_the_registry_refuses(
    kdeclare: CommandLine, registry: MemoryRegistry, run: Run
) -> None:
    register(registry, SUBJECT, ORDER)
    registry.faults.fail(Fault("INVALID_SCHEMA", "Bad name."), nth=None, method="find_version")
    ran = run("check", write_file(kdeclare, WITH_SIZE), "--subject", SUBJECT)
    assert ran.code == ExitCode.ERROR, ran
    assert "The registry cannot parse the schema: Bad name." in ran.err


def test_check_without_permission_is_unchecked(
    kdeclare: CommandLine, registry: MemoryRegistry, run: Run
) -> None:
    register(registry, SUBJECT, ORDER)
    registry.faults.fail(Fault(NOT_AUTHORIZED, "forbidden"), nth=None, method="check_compatibility")
    ran = run("check", write_file(kdeclare, WITH_NOTE), "--subject", SUBJECT)
    assert ran.code == ExitCode.OK, ran
    assert "  Compatibility: not checked at BACKWARD\n    - forbidden\n" in ran.out


def test_check_derives_type(kdeclare: CommandLine, registry: MemoryRegistry, run: Run) -> None:
    def find_type(name: str, schema: JsonValue, *options: str) -> JsonValue:
        return read_document(
            run, "check", write_file(kdeclare, schema, name), "--subject", SUBJECT, *options
        )["type"]

    proto = 'syntax = "proto3";\nmessage Order {\n  string id = 1;\n}\n'
    assert find_type("a.proto", proto) == "PROTOBUF"
    assert find_type("a.json", {"type": "object"}) == "JSON"
    assert find_type("a.json", ORDER, "--type", "avro") == "AVRO"
    assert find_type("a.txt", ORDER) == "AVRO"
    registry.elsewhere().register(SUBJECT, SchemaContent(SchemaType.PROTOBUF, proto))
    assert find_type("a.txt", proto) == "PROTOBUF"
    assert find_type("a.avsc", ORDER, "--level", "NONE") == "AVRO"


def test_check_resolves_references(kdeclare: CommandLine, registry: MemoryRegistry, run: Run) -> None:
    def list_references(*options: str) -> JsonValue:
        return read_document(run, "check", "user.avsc", "--subject", "user", *options)["references"]

    def build_reference(version: int) -> JsonValue:
        return [{"name": "x.Order", "subject": SUBJECT, "version": version}]

    register(registry, SUBJECT, ORDER, WITH_SIZE)
    write_file(kdeclare, USER, "user.avsc")
    unknown = run("check", "user.avsc", "--subject", "user", "--format", "json")
    assert (unknown.code, list_problems(unknown)) == (ExitCode.ERROR, ["invalid-schema"])
    assert list_references("--reference", f"x.Order={SUBJECT}") == build_reference(2)
    assert list_references("--reference", f"x.Order={SUBJECT}:1") == build_reference(1)
    missing = run("check", "user.avsc", "--subject", "user", "--reference", "x.Order=a:9", "--format", "json")
    assert list_problems(missing) == ["reference-missing"]
    registry.elsewhere().register("user", build_content(USER, SchemaReference("x.Order", SUBJECT, 1)))
    assert list_references() == build_reference(1)
    registration = read_document(run, "check", "user.avsc", "--subject", "user")["registration"]
    assert isinstance(registration, dict)
    assert registration["outcome"] == "latest-version"
    write_schema(kdeclare, USER, "user", references=[{"name": "x.Order", "subject": SUBJECT}])
    assert list_references() == build_reference(2)
    registration = read_document(run, "check", "user.avsc", "--subject", "user")["registration"]
    assert isinstance(registration, dict)
    assert registration["outcome"] == "new-version"


def test_check_of_schema_that_the_registry_cannot_check(
    kdeclare: CommandLine, apicurio: MemoryRegistry, run: Run
) -> None:
    register(apicurio, SUBJECT, ORDER)
    apicurio.elsewhere().register("user", build_content(USER, SchemaReference("x.Order", SUBJECT, 1)))
    apicurio.elsewhere().set_level("user", CompatibilityLevel.BACKWARD)
    write_file(kdeclare, {**USER, "doc": "A user."}, "user.avsc")
    compatibility = read_document(run, "check", "user.avsc", "--subject", "user")["compatibility"]
    assert isinstance(compatibility, dict)
    assert compatibility["result"] == "unchecked"
    assert compatibility["reasons"] == ["Could not execute compatibility rule on invalid schema"]


def test_check_rejects_unreadable_files_and_ambiguous_registries(
    kdeclare: CommandLine, registry: MemoryRegistry, us: MemoryRegistry, run: Run
) -> None:
    register(us, SUBJECT, ORDER)
    file = write_file(kdeclare, ORDER)
    assert run("check", file, "--subject", SUBJECT).code == ExitCode.OK
    ambiguous = run("check", file, "--subject", "new", "--format", "json")
    assert (ambiguous.code, list_problems(ambiguous)) == (ExitCode.ERROR, ["ambiguous-registry"])
    assert run("check", file, "--subject", "new", "--registry", "main").code == ExitCode.OK
    missing = run("check", "missing.avsc", "--subject", SUBJECT)
    assert missing.code == ExitCode.ERROR
    assert "'missing.avsc' cannot be read: no such file or directory." in missing.err
    (kdeclare.folder / "binary.avsc").write_bytes(b"\xff\xfe")
    binary = run("check", "binary.avsc", "--subject", SUBJECT)
    assert "'binary.avsc' cannot be read: it is not UTF-8 text." in binary.err
