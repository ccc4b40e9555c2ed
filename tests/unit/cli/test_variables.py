"""Variables of a project: declarations, ``--var``, ``--var-file``, and their precedence."""

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.manifests.project import open_project
from kdeclare.manifests.variables import GivenVariables
from tests.unit.cli.command_line import CommandLine

_TOPIC = """\
apiVersion: kdeclare/v1
kind: Topic
metadata: {name: orders}
spec:
  partitions: ${var.partitions}
  configs:
    retention.ms: ${var.retention}
"""


def write_project(
    kdeclare: CommandLine, declared: Mapping[str, object], lab: Mapping[str, object] | None = None
) -> None:
    document = {
        "apiVersion": "kdeclare/v1",
        "kind": "Project",
        "metadata": {"name": "shop"},
        "spec": {
            "variables": declared,
            "environments": {"lab": {"bootstrapServers": "lab:9092", "variables": dict(lab or {})}},
        },
    }
    (kdeclare.folder / "kdeclare.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    (kdeclare.folder / "manifests/orders.yaml").write_text(_TOPIC)


def read_planned(kdeclare: CommandLine, *options: str) -> dict[str, object]:
    ran = kdeclare("plan", "--format", "json", *options)
    assert ran.code == 0, ran.out + ran.err
    (change,) = json.loads(ran.out)["changes"]
    return {field["path"]: field["after"] for field in change["fields"]}


def test_default_is_used_in_its_type(kdeclare: CommandLine) -> None:
    write_project(
        kdeclare,
        {"partitions": {"type": "integer", "default": 6}, "retention": {"type": "duration", "default": "7d"}},
    )
    planned = read_planned(kdeclare)
    assert (planned["partitions"], planned["configs.retention.ms"]) == (6, "604800000")


def test_each_source_of_a_value_takes_precedence_over_the_next(kdeclare: CommandLine) -> None:
    """Checks each subset of --var, a later and an earlier --var-file, the environment, and the default."""
    (kdeclare.folder / "early.yaml").write_text("partitions: 3\n")
    (kdeclare.folder / "late.json").write_text('{"partitions": 4}')
    sources = [
        ["--var", "partitions=5"],
        ["--var-file", "late.json"],
        ["--var-file", "early.yaml"],
        "environment",
        "default",
    ]
    for chosen in itertools.product((False, True), repeat=5):
        if not any(chosen):
            continue
        write_project(
            kdeclare,
            {
                "partitions": {"type": "integer", **({"default": 1} if chosen[4] else {})},
                "retention": {"default": 9},
            },
            {"partitions": 2} if chosen[3] else {},
        )
        options = [
            word
            for index in (0, 2, 1)  # files are read in the order of the command line
            for word in sources[index]
            if chosen[index]
        ]
        assert read_planned(kdeclare, *options)["partitions"] == 5 - chosen.index(True)


def test_last_var_wins_and_declared_strings_are_taken_as_typed(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {"partitions": {}, "retention": {"type": "string"}})
    planned = read_planned(
        kdeclare, "--var", "partitions=1", "--var", "partitions=2", "--var", "retention=0012"
    )
    assert (planned["partitions"], planned["configs.retention.ms"]) == (2, "0012")


@pytest.mark.parametrize(
    "command", [("plan",), ("apply", "--yes"), ("validate",), ("show-manifest", "Topic/orders")]
)
def test_variable_without_value_is_reported_at_its_use(
    kdeclare: CommandLine, command: tuple[str, ...]
) -> None:
    write_project(kdeclare, {"partitions": {"type": "integer"}, "retention": {"default": 1}})
    ran = kdeclare(*command)
    assert ran.code == 1
    text = ran.out + ran.err
    assert "manifests/orders.yaml:5:15" in text
    for way in ("--var partitions=VALUE", "--var-file FILE", "environment", "default"):
        assert way in " ".join(text.split())
    assert kdeclare("validate", "--var", "partitions=1").code == 0


def test_variable_without_value_and_without_use_is_no_error(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {"partitions": {"default": 1}, "retention": {"default": 1}, "other": {}})
    assert kdeclare("validate").code == 0


@pytest.mark.parametrize("option", [("--var", "partitons=3"), ("--var-file", "values.yaml")])
def test_unknown_variable_is_reported_with_suggestion(kdeclare: CommandLine, option: tuple[str, ...]) -> None:
    write_project(kdeclare, {"partitions": {"default": 1}, "retention": {"default": 1}})
    (kdeclare.folder / "values.yaml").write_text("retention: 2\npartitons: 3\n")
    ran = kdeclare("plan", *option)
    assert ran.code == 1
    assert "Did you mean 'partitions'?" in ran.err
    assert ("values.yaml:2:1" if option[0] == "--var-file" else "--var partitons") in ran.err


def test_undeclared_variable_of_an_environment_is_an_error_if_the_project_declares_variables(
    kdeclare: CommandLine,
) -> None:
    write_project(kdeclare, {"partitions": {"default": 1}, "retention": {"default": 1}}, {"partitons": 3})
    ran = kdeclare("plan")
    assert ran.code == 1
    assert "Did you mean 'partitions'?" in ran.err
    assert "kdeclare.yaml:15:9" in ran.err


def test_var_replaces_variables_of_a_project_without_declarations(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {}, {"partitions": 1, "retention": 1})
    assert read_planned(kdeclare, "--var", "partitions=7")["partitions"] == 7
    assert kdeclare("plan", "--var", "partition=7").code == 1


def test_var_without_project_file_needs_no_declaration(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {})
    (kdeclare.folder / "kdeclare.yaml").unlink()
    options = ["--var", "partitions=2", "--var", "retention=5"]
    assert kdeclare("validate", "manifests", *options).code == 0
    assert kdeclare("validate", "manifests").code == 1


@pytest.mark.parametrize(
    ("declared_type", "good", "bad"),
    [
        ("integer", "12", "1.5"),
        ("integer", "-3", "twelve"),
        ("number", "1.5", "one"),
        ("boolean", "true", "1"),
        ("list", "[a, b]", "a"),
        ("map", "{a: 1}", "[a]"),
        ("duration", "7d", "7 days"),
        ("duration", "-1", "-2"),
        ("size", "50MiB", "50MB"),
    ],
)
def test_values_must_have_the_declared_type(
    kdeclare: CommandLine, declared_type: str, good: str, bad: str
) -> None:
    declared = {"x": {"type": declared_type}, "partitions": {"default": 1}, "retention": {"default": 1}}
    write_project(kdeclare, declared)
    assert kdeclare("validate", "--var", f"x={good}").code == 0
    ran = kdeclare("validate", "--var", f"x={bad}")
    assert ran.code == 1
    assert "Variable has the wrong type" in ran.err
    assert f"'{bad}'" not in ran.err, "a value can be a secret"
    write_project(kdeclare, declared, {"x": yaml.safe_load(good)})
    assert kdeclare("validate").code == 0
    write_project(kdeclare, {**declared, "x": {"type": declared_type, "default": yaml.safe_load(bad)}})
    ran = kdeclare("validate")
    assert ran.code == 1
    assert re.search("kdeclare.yaml:(9:16|10:7)", ran.err)


@pytest.mark.parametrize("text", ["x", "=3", ""])
def test_var_without_name_and_value_is_wrong_usage(kdeclare: CommandLine, text: str) -> None:
    assert kdeclare("plan", "--var", text).code == 64


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("[1]", "not a mapping"), ("", "is empty"), ("a: [", "syntax")],
)
def test_bad_var_file_is_reported(kdeclare: CommandLine, content: str | None, message: str) -> None:
    write_project(kdeclare, {"partitions": {"default": 1}, "retention": {"default": 1}})
    if content is not None:
        (kdeclare.folder / "v.yaml").write_text(content)
    ran = kdeclare("plan", "--var-file", "v.yaml")
    assert ran.code == 1
    assert message in ran.err


def test_var_with_plan_file_is_wrong_usage(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {"partitions": {}, "retention": {"default": 1}})
    assert kdeclare("plan", "--var", "partitions=2", "--out", "it.plan").code == 0
    assert kdeclare("apply", "it.plan", "--yes", "--var", "partitions=3").code == 64
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert len(kdeclare.cluster.topics()["orders"].partitions) == 2


def test_show_manifest_names_the_source_of_each_variable(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {"partitions": {"default": 1}, "retention": {"default": 5}})
    assert "${var.retention} is from kdeclare.yaml:10:16" in kdeclare("show-manifest", "Topic/orders").out
    (kdeclare.folder / "v.yaml").write_text("retention: 6\n")
    options = ["--var-file", "v.yaml", "--var", "partitions=3"]
    shown = kdeclare("show-manifest", "Topic/orders", *options).out
    assert "${var.retention} is from v.yaml:1:1" in shown
    assert "${var.partitions} is from --var partitions" in shown
    assert "partitions: 3" in shown


def test_references_in_given_values_have_the_limits_of_the_project(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(kdeclare, {"partitions": {}, "retention": {"default": 1}})
    monkeypatch.setenv("COUNT", "8")
    assert read_planned(kdeclare, "--var", "partitions=${env.COUNT}")["partitions"] == 8
    monkeypatch.setenv("CI", "true")
    assert "Reference is not allowed" in kdeclare("plan", "--var", "partitions=${env.COUNT}").err


def test_open_project_reports_all_problems_together(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {"a": {"type": "integer"}, "b": {"type": "boolean"}})
    given = GivenVariables(assignments=(("a", "x"), ("b", "maybe"), ("c", "z")))
    with pytest.raises(KdeclareError) as refusal:
        open_project(Path("kdeclare.yaml"), None, {}, variables=given)
    assert {(d.code, d.subject) for d in refusal.value.diagnostics} == {
        ("wrong-variable-type", "a"),
        ("wrong-variable-type", "b"),
        ("unknown-variable", "c"),
    }


@pytest.mark.parametrize(
    "assignment", ["partitions=many", "partitions=[1", "unknown=1", "partitions=${env.NONE}"]
)
def test_errors_about_options_name_the_option_without_a_line(kdeclare: CommandLine, assignment: str) -> None:
    write_project(kdeclare, {"partitions": {"type": "integer"}, "retention": {"default": "7d"}})
    ran = kdeclare("validate", "--var", assignment)
    assert ran.code == 1
    option = f"--var {assignment.partition('=')[0]}"
    assert re.search(rf"^ *{option}($| )", ran.out + ran.err, re.MULTILINE), ran.out + ran.err
    assert f"{option}:" not in ran.out + ran.err


_POLICY = """\
apiVersion: kdeclare/v1
kind: Policy
metadata: {name: limit}
spec:
  actions: [CREATE, MODIFY]
  rule: post.partitions <= ${var.limit}
  message: Too many partitions.
"""


@pytest.fixture
def declared_topic(kdeclare: CommandLine) -> CommandLine:
    """A topic whose name and number of partitions are variables without values, and which was applied."""
    write_project(kdeclare, {"name": {}, "partitions": {"type": "integer"}})
    kdeclare.write(
        "manifests/orders.yaml", "Topic", "${var.name}", partitions="${var.partitions}", replicationFactor=1
    )
    assert kdeclare("apply", "--yes", *_GIVEN).code == 0
    return kdeclare


_GIVEN = ("--var", "name=orders", "--var", "partitions=2")


def test_import_leaves_out_resources_that_are_declared_with_given_variables(
    declared_topic: CommandLine,
) -> None:
    assert "name: orders" in declared_topic("import").out
    ran = declared_topic("import", *_GIVEN)
    assert (ran.code, ran.out) == (0, "")
    assert "1 resource (already declared in the project)" in ran.err


@pytest.mark.slow
def test_doctor_checks_manifests_with_given_variables(declared_topic: CommandLine) -> None:
    def check_manifests(*options: str) -> str:
        checks = json.loads(declared_topic("doctor", "--format", "json", *options).out)["checks"]
        (standing,) = [check["standing"] for check in checks if check["name"] == "Manifests"]
        return str(standing)

    assert check_manifests() == "failed"
    assert check_manifests(*_GIVEN) == "ok"


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("history",),
        ("state", "list"),
        ("lock", "show"),
        ("topic", "list"),
        ("rollback", "--yes"),
    ],
    ids=" ".join,
)
def test_commands_without_manifests_accept_variables_and_check_their_types(
    declared_topic: CommandLine, command: tuple[str, ...]
) -> None:
    assert declared_topic(*command, *_GIVEN).code == 0
    ran = declared_topic(*command, "--var", "partitions=many")
    assert ran.code == 1
    assert "Variable has the wrong type" in ran.err


def test_ad_hoc_command_writes_to_a_manifest_with_given_variables(declared_topic: CommandLine) -> None:
    alter = ("topic", "alter", "orders", "--add-config", "retention.ms=5", "--write-manifest", "--yes")
    assert declared_topic(*alter).code != 0
    ran = declared_topic(*alter, *_GIVEN)
    assert ran.code == 0, ran.err
    assert "retention.ms: 5\n" in (declared_topic.folder / "manifests/orders.yaml").read_text()
    assert declared_topic("plan", "--detailed-exitcode", *_GIVEN).code == 0


def test_policies_of_ad_hoc_commands_use_given_variables(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {"limit": {"type": "integer", "default": 9}})
    (kdeclare.folder / "manifests/orders.yaml").write_text(_POLICY)
    create = ("topic", "create", "orders", "--partitions", "5", "--replication-factor", "1", "--yes")
    assert kdeclare(*create, "--var", "limit=4").code == 3
    assert kdeclare(*create).code == 0


def test_new_repeats_the_given_variables_for_the_plan(kdeclare: CommandLine) -> None:
    write_project(kdeclare, {"partitions": {"default": 1}, "retention": {"default": 1}, "kept": {}})
    new = ("new", "topic", "returns", "--config", "retention.ms=${var.kept}")
    assert kdeclare(*new).code == 1
    ran = kdeclare(*new, "--var", "kept=3")
    assert ran.code == 0, ran.err
    assert "Next: kdeclare plan --var kept=3" in ran.err


def test_shell_adds_its_variables_to_each_line(declared_topic: CommandLine) -> None:
    lines = "show-manifest Topic/orders\nshow-manifest Topic/orders --var partitions=7\n"
    ran = declared_topic("shell", *_GIVEN, piped=lines)
    assert ran.code == 0, ran.err
    assert re.findall("partitions: ([0-9]+)", ran.out) == ["2", "7"]
