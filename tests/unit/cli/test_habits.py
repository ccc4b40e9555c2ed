"""Command lines in the style of Terraform, kubectl and Kafka's own tools work, or name what to type."""

import shlex

import pytest

from kdeclare.version import VERSION
from tests.unit.cli.command_line import CommandLine


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("plan -out=x", "plan --out=x"),
        ("plan -out x -detailed-exitcode", "plan --out x --detailed-exitcode"),
        ("plan -json", "plan --format json"),
        ("plan -input=false -compact-warnings", "plan"),
        ("plan -f manifests", "plan manifests"),
        ("plan --filename=manifests", "plan manifests"),
        ("apply -auto-approve", "apply --yes"),
        ("apply --auto-approve it.plan", "apply --yes it.plan"),
        ("apply -auto-approve=true", "apply --yes"),
        ("refresh", "plan --refresh-only"),
        ("diff --env prod", "plan --env prod"),
        ("console", "shell"),
        ("force-unlock 5b1e", "lock break"),
        ("export --out manifests", "import --out manifests"),
        ("topic --list", "topic list"),
        ("topic --bootstrap-server b:9092 --list", "topic list --bootstrap-server b:9092"),
        ("topic --describe --topic orders", "topic describe --topic orders"),
        ("topic --create --topic a -partitions=3", "topic create --topic a --partitions=3"),
        ("kafka-topics --list --bootstrap-server b:9092", "topic list --bootstrap-server b:9092"),
        (
            "config --alter --topic a --add-config retention.ms=1",
            "config alter --topic a --add-config retention.ms=1",
        ),
        ("config --describe --entity-type topics", "config describe --entity-type topics"),
        ("kafka-acls --list", "acl list"),
        ("acl --remove --topic a", "acl remove --topic a"),
        ("group --describe --group g", "group describe --group g"),
        ("consumer-groups --reset-offsets --group g", "group reset-offsets --group g"),
    ],
)
def test_habit_names_command_to_type(kdeclare: CommandLine, line: str, typed: str) -> None:
    ran = kdeclare(*shlex.split(line))
    assert (ran.code, ran.out) == (64, "")
    assert f"Type: kdeclare {typed}\n" in ran.err


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("destroy", "kdeclare apply --allow-deletes"),
        ("workspace select prod", "--env NAME"),
        ("taint kafka_topic.orders", "kdeclare plan --replace Topic/NAME"),
        ("output", "kdeclare catalog"),
    ],
)
def test_habit_without_counterpart_is_explained(kdeclare: CommandLine, line: str, part: str) -> None:
    ran = kdeclare(*line.split())
    assert ran.code == 64
    assert part in ran.err
    assert "No such command" not in ran.err


def test_version_is_also_a_command(kdeclare: CommandLine) -> None:
    ran = kdeclare("version")
    assert (ran.code, ran.out) == (0, f"kdeclare {VERSION}\n")
    assert "version" not in kdeclare("--help").out.replace("--version", "")


def test_yes_has_short_form(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("apply", "-y").code == 0
    assert kdeclare.topics == {"orders"}


def test_secret_is_redacted_in_command_to_type(kdeclare: CommandLine) -> None:
    ran = kdeclare(
        "config", "--alter", "--entity-type", "users", "--add-config", "SCRAM-SHA-512=[password=hush]"
    )
    assert "Type: kdeclare config alter" in ran.err
    assert "hush" not in ran.err


@pytest.mark.parametrize(
    "line",
    [
        "plan -- -out=x",  # after two dashes, everything is a path
        "plan -auto-approve",  # a plan asks nothing
        "topic frobnicate --list",  # an unknown command comes first
        "frobnicate -out=x",
    ],
)
def test_other_command_lines_are_left_alone(kdeclare: CommandLine, line: str) -> None:
    ran = kdeclare(*line.split())
    assert ran.code != 0
    assert "Type: kdeclare" not in ran.err
