"""Files of other tools become manifests that are valid, and everything else is listed."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from kdeclare.convert.formats import FORMATS
from kdeclare.report.conversion import build_conversion_schemas
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.report.golden_files import check_file, check_schema

SOURCES = Path(__file__).parent
SCHEMA = build_conversion_schemas()["conversion"]
each_format = pytest.mark.parametrize("source_format", FORMATS)


def list_sources(kdeclare: CommandLine, source_format: str) -> list[str]:
    """Copy the files of a format into the working folder and return the names of those to convert."""
    shutil.copytree(SOURCES / source_format, kdeclare.folder, dirs_exist_ok=True)
    return sorted(path.name for path in (SOURCES / source_format).glob("source*"))


def run_convert(kdeclare: CommandLine, source_format: str, *more: str) -> CommandResult:
    """Convert the example of a format."""
    return kdeclare("convert", "--from", source_format, *list_sources(kdeclare, source_format), *more)


@each_format
def test_example_becomes_manifests_and_gaps(kdeclare: CommandLine, source_format: str) -> None:
    ran = run_convert(kdeclare, source_format)
    assert ran.code == 0
    check_file(SOURCES / source_format / "manifests.golden.yaml", ran.out)
    check_file(SOURCES / source_format / "gaps.golden.txt", ran.err)


@each_format
def test_manifests_are_valid(
    kdeclare: CommandLine, source_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads(run_convert(kdeclare, source_format, "--format", "json", "--out", "manifests").out)
    assert document["manifests"]
    for name in document["variables"]:
        monkeypatch.setenv(name, "it")
    ran = kdeclare("validate")
    assert ran.code == 0, ran
    assert f"{len(document['manifests'])} resources" in ran.out
    assert "error" not in ran.out


@each_format
def test_json_contains_the_same_as_the_text(kdeclare: CommandLine, source_format: str) -> None:
    text = run_convert(kdeclare, source_format)
    document = json.loads(run_convert(kdeclare, source_format, "--format", "json").out)
    Draft202012Validator(SCHEMA).validate(document)
    assert "---\n".join(item["text"] for item in document["manifests"]) == text.out
    for gap in document["gaps"]:
        place = gap["place"]
        assert (
            f"{place['file']}:{place['line']}:{place['column']}: {gap['subject']}: {gap['reason']}"
            in text.err
        )


@each_format
def test_secrets_are_not_copied(kdeclare: CommandLine, source_format: str) -> None:
    ran = run_convert(kdeclare, source_format, "--format", "json")
    assert "hunter2" not in ran.out + ran.err
    ran = run_convert(kdeclare, source_format)
    assert "hunter2" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("source_format", "text"),
    [
        (
            "strimzi",
            "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: a}\nspec: {partitions: 1",
        ),
        ("topicctl", "meta: {name: a}\nspec: {partitions: 1"),
        ("kafka-gitops", "topics:\n  a: {partitions: 1"),
        ("julieops", "context: c\nprojects:\n  - name: p\n    topics:\n      - {name: a"),
        (
            "jikkou",
            "apiVersion: kafka.jikkou.io/v1\nkind: KafkaTopic\nmetadata: {name: a}\nspec: {partitions: 1",
        ),
        (
            "terraform",
            '{"version": 4, "resources": [{"type": "kafka_topic", "mode": "managed", "name": "a", '
            '"instances": [{"attributes": {"name": "a"',
        ),
    ],
)
def test_unknown_field_is_listed(kdeclare: CommandLine, source_format: str, text: str) -> None:
    """Whatever field another version of the tool adds."""
    closing = "}}]}]}" if source_format == "terraform" else "}"
    (kdeclare.folder / "it.yaml").write_text(f'{text}, "futureField": 7{closing}\n')
    ran = kdeclare("convert", "--from", source_format, "it.yaml")
    assert ran.code == 0, ran
    assert "name: " in ran.out
    assert re.search(r"it\.yaml:\d+:\d+: .*futureField: kdeclare has no field for this\.", ran.err), ran.err


def test_template_is_refused(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "it.yaml").write_text("a: 1\nname: {{ values.name }}\n")
    ran = kdeclare("convert", "--from", "jikkou", "it.yaml")
    assert ran.code == 1
    assert "it.yaml:2:7" in ran.err
    assert "jikkou prepare" in ran.err


def test_plan_of_terraform_is_refused(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "it.json").write_text(
        '{"format_version": "1.2", "planned_values": {"root_module": {}}}'
    )
    ran = kdeclare("convert", "--from", "terraform", "it.json")
    assert ran.code == 1
    assert "terraform show -json" in ran.err


def test_merge_keys_and_anchors_are_expanded(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "it.yaml").write_text(
        "topics:\n  a: &base {partitions: 3, replication: 2, configs: &c {retention.ms: 1}}\n"
        "  b: {<<: *base, partitions: 5}\n  c: {partitions: 1, configs: *c}\n"
    )
    ran = kdeclare("convert", "--from", "kafka-gitops", "it.yaml")
    specs = {d["metadata"]["name"]: d["spec"] for d in yaml.safe_load_all(ran.out)}
    assert specs == {
        "a": {"partitions": 3, "replicationFactor": 2, "configs": {"retention.ms": 1}},
        "b": {"partitions": 5, "replicationFactor": 2, "configs": {"retention.ms": 1}},
        "c": {"partitions": 1, "configs": {"retention.ms": 1}},
    }


def test_schema_is_published() -> None:
    check_schema("conversion", SCHEMA)


@each_format
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2", "YAML syntax error"),
        ("", "File has a different format"),
        ("just text", "File has a different format"),
        ("- a\n- b\n", "File has a different format"),
        ("42: {a: b}\n", "File has a different format"),
        ("? [a]\n: b\n", "File has a different format"),
    ],
)
def test_other_file_is_refused(kdeclare: CommandLine, source_format: str, text: str, message: str) -> None:
    (kdeclare.folder / "odd.yaml").write_text(text)
    ran = kdeclare("convert", "--from", source_format, "odd.yaml")
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err or "Key is not a string" in ran.err
    assert "odd.yaml:" in ran.err


def test_missing_file_is_refused(kdeclare: CommandLine) -> None:
    ran = kdeclare("convert", "--from", "strimzi", "nowhere.yaml")
    assert ran.code == 1
    assert "'nowhere.yaml' does not exist" in ran.err


def test_unknown_tool_is_wrong_usage(kdeclare: CommandLine) -> None:
    ran = kdeclare("convert", "--from", "puppet", "it.yaml")
    assert ran.code == 64
    assert "strimzi" in ran.err


def test_existing_manifests_are_not_overwritten(kdeclare: CommandLine) -> None:
    assert run_convert(kdeclare, "strimzi", "--out", "it").code == 0
    ran = run_convert(kdeclare, "strimzi", "--out", "it")
    assert ran.code == 1
    assert "would overwrite" in ran.err


def test_topic_that_is_declared_twice_is_written_once(kdeclare: CommandLine) -> None:
    topic = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: a}\nspec: {partitions: %d}\n"
    (kdeclare.folder / "one.yaml").write_text(topic % 1)
    (kdeclare.folder / "two.yaml").write_text(topic % 2)
    ran = kdeclare("convert", "--from", "strimzi", "one.yaml", "two.yaml")
    assert [document["spec"] for document in yaml.safe_load_all(ran.out)] == [{"partitions": 1}]
    assert re.search(r"two\.yaml:4:7: Topic/a: .* is declared more than once\..*one\.yaml:4:7", ran.err)


def test_wrong_types_are_listed(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "it.yaml").write_text(
        "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: a, labels: [x]}\n"
        "spec:\n  partitions: many\n  replicas: [3]\n  config: {retention.ms: {a: b}, segment.ms: [1, 2]}\n"
        "---\napiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata: {name: u}\n"
        "spec: {authorization: {type: simple, acls: [x, {operations: [Read]}]}}\n"
    )
    ran = kdeclare("convert", "--from", "strimzi", "it.yaml")
    assert ran.code == 0
    for part in (
        "it.yaml:5:3: KafkaTopic/a spec.partitions: 'many' is not a whole number.",
        "it.yaml:6:3: KafkaTopic/a spec.replicas: This field must be a single value.",
        "it.yaml:3:21: KafkaTopic/a metadata.labels: This field must be a mapping.",
        "it.yaml:7:12: KafkaTopic/a spec.config.retention.ms: A setting cannot be a mapping.",
        "KafkaUser/u spec.authorization.acls[0]: This item must be a mapping.",
        "KafkaUser/u spec.authorization.acls[1].operations: The rule has no resource.",
        "Topic/a configs.segment.ms",
    ):
        assert part in ran.err, ran.err
