"""``kdeclare init`` and ``kdeclare new`` create files."""

import shlex
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def empty_folder(kdeclare: CommandLine, tmp_path: Path) -> Path:
    """An empty working folder."""
    folder = tmp_path / "my kafka"
    folder.mkdir()
    kdeclare.monkeypatch.chdir(folder)
    return folder


def test_init_creates_valid_project(kdeclare: CommandLine, empty_folder: Path) -> None:
    ran = kdeclare("init")
    assert (ran.code, ran.out) == (0, "kdeclare.yaml\nmanifests/example.yaml\n.gitignore\n")
    assert ran.err == "Next: kdeclare sandbox start && kdeclare new topic orders && kdeclare plan\n"
    assert kdeclare("validate").out == "Valid: 0 resources in 1 file.\n"
    project = yaml.safe_load((empty_folder / "kdeclare.yaml").read_text())
    assert project["metadata"] == {"name": "my kafka"}
    assert project["spec"]["environments"] == {"sandbox": {"bootstrapServers": "127.0.0.1:19092"}}
    assert (empty_folder / ".gitignore").read_text() == "/state/\n/.sandbox/\n*.plan\n*.plan.json\n"
    assert kdeclare("new", "topic", "orders").code == 0
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare.topics == {"orders"}


def test_init_example_is_valid_when_uncommented(kdeclare: CommandLine, empty_folder: Path) -> None:
    kdeclare("init")
    file = empty_folder / "manifests" / "example.yaml"
    _, _, *lines = file.read_text().splitlines()
    file.write_text("".join(line.removeprefix("#").removeprefix(" ") + "\n" for line in lines))
    assert kdeclare("validate").out == "Valid: 1 resource in 1 file.\n"
    assert "1 to create" in kdeclare("plan").out


def test_init_from_cluster_writes_project_without_example(kdeclare: CommandLine, empty_folder: Path) -> None:
    ran = kdeclare(
        "init", "deep/er", "--name", "payments", "--bootstrap-server", "b:9092,c:9092", "--from-cluster"
    )
    assert ran.out == "deep/er/kdeclare.yaml\ndeep/er/.gitignore\n"
    assert ran.err == "Next: cd deep/er && kdeclare import --out manifests\n"
    project = yaml.safe_load((empty_folder / "deep/er/kdeclare.yaml").read_text())
    assert project["metadata"] == {"name": "payments"}
    assert project["spec"]["environments"] == {"default": {"bootstrapServers": "b:9092,c:9092"}}
    assert list((empty_folder / "deep/er/manifests").iterdir()) == []
    assert kdeclare("validate", "--project", "deep/er/kdeclare.yaml").code == 0


def test_init_writes_no_example_beside_existing_manifests(kdeclare: CommandLine, empty_folder: Path) -> None:
    (empty_folder / "manifests" / "topics").mkdir(parents=True)
    (empty_folder / "manifests" / "topics" / "orders.yaml").write_text(TEXT)
    ran = kdeclare("init", "--bootstrap-server", "b:9092")
    assert (ran.out, ran.err) == ("kdeclare.yaml\n.gitignore\n", "Next: kdeclare plan\n")
    (empty_folder / "kdeclare.yaml").unlink()
    assert "Next: put the cluster's address into kdeclare.yaml, then kdeclare plan" in kdeclare("init").err
    assert [file.name for file in (empty_folder / "manifests").iterdir()] == ["topics"]


def test_next_step_hint_is_shell_quoted(kdeclare: CommandLine, empty_folder: Path) -> None:
    assert "Next: cd 'a b;c' && kdeclare sandbox" in kdeclare("init", "a b;c").err
    ran = kdeclare("new", "topic", "orders", "--partitions", "1", "--replication-factor", "1")
    line = "kdeclare plan manifests/orders.yaml --bootstrap-server HOST:PORT"
    assert ran.err.splitlines()[-1] == f"Next: {line}"
    ran = kdeclare(*line.replace("HOST:PORT", "lab:9092").split()[1:])
    assert (ran.code, "1 to create" in ran.out) == (0, True)


def test_next_step_hint_names_project_and_environment(kdeclare: CommandLine) -> None:
    environments = {name: {"bootstrapServers": "lab:9092"} for name in ("lab", "e u")}
    kdeclare.write("my project.yaml", "Project", "shop", environments=environments)
    size = ("--partitions", "1", "--replication-factor", "1")
    ran = kdeclare("new", "topic", "orders", *size, "--project", "my project.yaml", "--env", "e u")
    line = "kdeclare plan --project 'my project.yaml' --env 'e u'"
    assert ran.err == f"Next: {line}\n"
    planned = kdeclare(*shlex.split(line)[1:])
    assert (planned.code, "1 to create" in planned.out) == (0, True)
    ran = kdeclare("new", "topic", "payments", *size, "--env", "lab")
    assert ran.err == "Next: kdeclare plan --env lab\n"


def test_init_keeps_bytes_of_existing_gitignore(kdeclare: CommandLine, empty_folder: Path) -> None:
    (empty_folder / ".gitignore").write_bytes(b"caf\xe9\r\n/state/\r\nlast")
    assert kdeclare("init").code == 0
    assert (
        empty_folder / ".gitignore"
    ).read_bytes() == b"caf\xe9\r\n/state/\r\nlast\n/.sandbox/\n*.plan\n*.plan.json\n"


def test_init_with_unreadable_gitignore_writes_nothing(kdeclare: CommandLine, empty_folder: Path) -> None:
    (empty_folder / ".gitignore").mkdir()
    ran = kdeclare("init")
    assert (ran.code, "error: Files cannot be written" in ran.err) == (1, True)
    assert [file.name for file in empty_folder.iterdir()] == [".gitignore"], "nothing is half begun"


def test_init_overwrites_nothing(kdeclare: CommandLine, empty_folder: Path) -> None:
    (empty_folder / "manifests").mkdir()
    (empty_folder / "manifests" / "example.yaml").write_text("# mine\n")
    (empty_folder / ".gitignore").write_text("*.plan.json\n/build")
    ran = kdeclare("init", "--name", "shop")
    assert ran.out == "kdeclare.yaml\n.gitignore\n"
    assert "manifests/example.yaml already exists and was not changed.\n" in ran.err
    assert (empty_folder / "manifests" / "example.yaml").read_text() == "# mine\n"
    assert (empty_folder / ".gitignore").read_text() == "*.plan.json\n/build\n/state/\n/.sandbox/\n*.plan\n"
    before = (empty_folder / "kdeclare.yaml").read_text()
    ran = kdeclare("init", "--name", "other")
    assert (ran.code, ran.out) == (1, "")
    assert "error: Project already exists" in ran.err
    assert (empty_folder / "kdeclare.yaml").read_text() == before


@pytest.mark.parametrize("name", ["a/b", "..", "a\nb"])
def test_init_rejects_invalid_project_name(kdeclare: CommandLine, empty_folder: Path, name: str) -> None:
    ran = kdeclare("init", "--name", name)
    assert (ran.code, "error: Invalid project name" in ran.err) == (1, True)
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("name", ["yes", "12", "a, b: {c}", "#x", "a'b\"c"])
def test_init_quotes_ambiguous_yaml_names(kdeclare: CommandLine, empty_folder: Path, name: str) -> None:
    assert kdeclare("init", "--name", name, "--bootstrap-server", "12:34").code == 0
    document = yaml.safe_load((empty_folder / "kdeclare.yaml").read_text())
    assert document["metadata"] == {"name": name}
    assert document["spec"]["environments"]["default"]["bootstrapServers"] == "12:34"
    assert kdeclare("validate").code == 0


def test_init_reports_unwritable_folder(kdeclare: CommandLine, empty_folder: Path) -> None:
    (empty_folder / "file").write_text("")
    ran = kdeclare("init", "file/folder")
    assert (ran.code, "error: Files cannot be written" in ran.err) == (1, True)


TEXT = """\
apiVersion: kdeclare/v1
kind: Topic
metadata:
  name: orders
spec:
  partitions: 12
  replicationFactor: 3
  configs:
    retention.ms: 604800000
    cleanup.policy: [compact, delete]
    compression.type: zstd
"""


def test_new_topic_writes_manifest(kdeclare: CommandLine) -> None:
    configs = ("retention.ms=604800000", "cleanup.policy=compact, delete", "compression.type=zstd")
    options = [word for config in configs for word in ("--config", config)]
    ran = kdeclare("new", "topic", "orders", "--partitions", "12", "--replication-factor", "3", *options)
    assert (ran.code, ran.out) == (0, "manifests/orders.yaml\n")
    assert (kdeclare.folder / "manifests" / "orders.yaml").read_text() == TEXT
    assert kdeclare("validate").out == "Valid: 1 resource in 1 file.\n"
    assert kdeclare.cluster.calls == [], "no cluster is asked"


def test_new_topic_values_are_parsed_like_manifest_values(kdeclare: CommandLine) -> None:
    lab = {"bootstrapServers": "lab:9092", "variables": {"short": 1000}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    configs = ("retention.ms=${var.short}", "cleanup.policy=[compact]", "flush.ms=1")
    options = [word for config in configs for word in ("--config", config)]
    assert kdeclare("new", "topic", "007", *options).code == 0
    document = yaml.safe_load((kdeclare.folder / "manifests" / "007.yaml").read_text())
    assert document["metadata"] == {"name": "007"}
    assert document["spec"]["configs"] == {
        "retention.ms": "${var.short}",
        "cleanup.policy": ["compact"],
        "flush.ms": 1,
    }
    assert kdeclare("validate").code == 0


REFUSED = {
    "Illegal topic name": "../orders",
    "Unknown config key": "orders --config retention.m=1",
    "Invalid config value": "orders --config retention.ms=long",
    "Variable is not defined": "orders --config retention.ms=${var.none}",
    "Resource is already declared": "payments",
    "Manifest file already exists": "taken",
    "Topic names collide": "pay.ments",
    "No such environment": "orders --env live",
}


@pytest.mark.parametrize(("said", "line"), REFUSED.items(), ids=REFUSED.keys())
def test_new_topic_refuses_invalid_manifest(kdeclare: CommandLine, said: str, line: str) -> None:
    kdeclare.topic("pay_ments")
    (kdeclare.folder / "manifests" / "all.yaml").write_text(
        (kdeclare.topic("payments")).read_text() + "---\n# more to come\n"
    )
    (kdeclare.folder / "manifests" / "payments.yaml").unlink()
    (kdeclare.folder / "manifests" / "taken.yaml").write_text("# nothing yet\n")
    before = {path: path.read_text() for path in kdeclare.folder.rglob("*.yaml")}
    ran = kdeclare("new", "topic", *line.split())
    assert (ran.code, ran.out) == (1, "")
    assert f"error: {said}" in ran.err
    assert {path: path.read_text() for path in kdeclare.folder.rglob("*.yaml")} == before


@pytest.mark.parametrize(
    ("option", "value", "detail"),
    [
        ("--config retention.ms", "soon", "'retention.ms' takes an integer, not 'soon'."),
        ("--config retention.ms", "${var.none}", "The environment defines no variable 'none'."),
        ("--partitions", "3000000000", ""),
    ],
)
def test_new_topic_errors_name_the_option(
    kdeclare: CommandLine, option: str, value: str, detail: str
) -> None:
    flag, _, key = option.partition(" ")
    given = (flag, f"{key}={value}" if key else value)
    ran = kdeclare("new", "topic", "orders", "--config", "flush.ms=1", *given)
    assert ran.code == 1
    assert f"  Topic/orders\n  {option}: {detail}" in ran.err
    assert "orders.yaml" not in ran.err, "there is no such file"


@pytest.mark.parametrize("key", ["{a", "a: [b", "#", '"', "- a", "${a"])
def test_new_topic_keeps_keys_as_text(kdeclare: CommandLine, key: str) -> None:
    ran = kdeclare("new", "topic", "orders", "--config", f"{key}=1")
    assert (ran.code, ran.out) == (1, "")
    assert "error: Unknown config key" in ran.err
    assert f"'{key}' is not a Kafka topic config" in ran.err
    assert not (kdeclare.folder / "manifests" / "orders.yaml").exists()


def test_new_topic_never_writes_invalid_yaml(kdeclare: CommandLine) -> None:
    kdeclare.monkeypatch.setattr("kdeclare.app.authoring.scaffolds.scalar", lambda value, **_: value)
    ran = kdeclare("new", "topic", "orders", "--config", "{a=1")
    assert (ran.code, ran.out) == (1, "")
    assert "error: YAML syntax error\n  manifests/orders.yaml:8:1\n" in ran.err
    assert not (kdeclare.folder / "manifests" / "orders.yaml").exists()


@pytest.mark.parametrize("config", ["retention.ms=1\n2", "a\nb=1", "a=1\u20282"])
def test_new_topic_rejects_line_breaks_in_config(kdeclare: CommandLine, config: str) -> None:
    ran = kdeclare("new", "topic", "orders", "--config", config)
    assert (ran.code, "cannot contain line breaks" in ran.err) == (64, True)
    assert not (kdeclare.folder / "manifests" / "orders.yaml").exists()


def test_new_topic_ignores_errors_in_other_manifests(kdeclare: CommandLine) -> None:
    kdeclare.topic("payments", partitons=1)
    assert kdeclare("new", "topic", "orders").code == 0


def test_new_topic_writes_to_topics_folder(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "manifests" / "topics").mkdir()
    assert kdeclare("new", "topic", "orders").out == "manifests/topics/orders.yaml\n"


def test_new_topic_works_without_project(kdeclare: CommandLine, empty_folder: Path) -> None:
    assert kdeclare("new", "topic", "orders", "--partitions", "1").out == "manifests/orders.yaml\n"
    assert "Resource is already declared" in kdeclare("new", "topic", "orders").err
    assert kdeclare("validate", "manifests").code == 0
