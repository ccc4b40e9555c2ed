"""KIP-4's rules in `kdeclare topic`, one by one, on both clusters ("Alter Topic Request", 1 to 3)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdeclare.providers.kafka.live import Topic
from tests.beds import AnyBed
from tests.cases import case
from tests.unit.cli.command_line import CommandLine, CommandResult


class UnclosedCluster:
    """The connection to the cluster under test, which commands do not close."""

    def __init__(self, bed: AnyBed) -> None:
        self._cluster = bed.cluster

    def __getattr__(self, name: str) -> Any:
        return (lambda: None) if name == "close" else getattr(self._cluster, name)


class TopicCommands:
    """Command lines about one topic."""

    def __init__(self, bed: AnyBed, line: CommandLine) -> None:
        self.bed = bed
        self.line = line
        line.cluster = UnclosedCluster(bed)  # type: ignore[assignment]
        self.name = bed.name()

    def __call__(self, verb: str, *arguments: str, code: int = 0) -> CommandResult:
        """Run a command with --yes."""
        ran = self.line("topic", verb, *arguments, "--yes")
        assert ran.code == code, ran.out + ran.err
        return ran

    def create(self, *partitions: tuple[int, ...]) -> None:
        """Create the topic with these replicas."""
        self.bed.create(dict(enumerate(partitions)), name=self.name)

    def alter(self, *arguments: str, code: int = 0) -> CommandResult:
        """Run ``topic alter`` for the topic."""
        return self("alter", self.name, *arguments, code=code)

    def eventually(self, check: Callable[[list[tuple[int, ...]]], bool]) -> None:
        """Wait until the replicas of its partitions satisfy a condition."""

        def check_replicas() -> None:
            topic: Topic = self.bed.topic(self.name)
            assert check([p.replicas for p in topic.partitions]), topic

        self.bed.eventually(check_replicas)


@pytest.fixture
def commands(
    bed: AnyBed, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> TopicCommands:
    """A command line connected to the cluster under test."""
    return TopicCommands(bed, CommandLine(tmp_path, capsys, monkeypatch))


def list_sizes(replicas: list[tuple[int, ...]]) -> list[int]:
    return [len(each) for each in replicas]


def test_create_with_counts_assignments_and_configs(commands: TopicCommands) -> None:
    commands(
        "create",
        commands.name,
        "--partitions",
        "3",
        "--replication-factor",
        "2",
        "--config",
        "retention.ms=7",
    )
    commands.eventually(lambda found: list_sizes(found) == [2, 2, 2])
    placed = commands.bed.delete_at_end(commands.bed.name())
    commands("create", placed, "--replica-assignment", "1:2,3:1")
    assert [p.replicas for p in commands.bed.topic(placed).partitions] == [(1, 2), (3, 1)]


def test_rule_1_1_different_assignment_is_a_reassignment(commands: TopicCommands) -> None:
    commands.create((1, 2), (2, 3))
    commands.alter("--replica-assignment", "1:2,3:1")
    commands.eventually(lambda found: found == [(1, 2), (3, 1)])


def test_rule_1_2_missing_partition_is_added(commands: TopicCommands) -> None:
    commands.create((1, 2))
    commands.alter("--replica-assignment", "1:2,3:1")
    commands.eventually(lambda found: found == [(1, 2), (3, 1)])


def test_rule_1_counts_with_assignment_are_ignored_with_warning(commands: TopicCommands) -> None:
    commands.create((1, 2), (2, 3), (3, 1))
    ran = commands.alter("--replica-assignment", "2:1", "--partitions", "9", "--replication-factor", "1")
    assert "kdeclare ignores the requested partitions and replication factor" in ran.out
    commands.eventually(lambda found: found == [(2, 1), (2, 3), (3, 1)])


def test_rule_1_same_assignment_changes_nothing(commands: TopicCommands) -> None:
    commands.create((1, 2))
    assert "already up to date" in commands.alter("--replica-assignment", "1:2").out


@case("KIP4-03")
def test_rule_2_1_factor_with_partitions_places_all_partitions(commands: TopicCommands) -> None:
    commands.create((1,), (2,))
    commands.alter("--replication-factor", "2", "--partitions", "3")
    commands.eventually(lambda found: list_sizes(found) == [2, 2, 2] and [r[0] for r in found][:2] == [1, 2])


def test_rule_2_2_factor_alone_applies_to_existing_partitions(commands: TopicCommands) -> None:
    commands.create((1, 2, 3), (2, 3, 1))
    commands.alter("--replication-factor", "2")
    commands.eventually(lambda found: list_sizes(found) == [2, 2])


def test_rule_3_1_fewer_partitions_is_invalid_partitions(commands: TopicCommands) -> None:
    commands.create((1,), (2,))
    ran = commands.alter("--partitions", "1", "--format", "json", code=3)
    assert [d["code"] for d in json.loads(ran.out)["diagnostics"]] == ["invalid-partitions"]
    commands.eventually(lambda found: found == [(1,), (2,)])


@case("KIP4-06")
def test_rule_3_2_added_partitions_are_placed_and_others_stay(commands: TopicCommands) -> None:
    commands.create((1, 2), (2, 3), (3, 1), (1, 3))
    commands.alter("--partitions", "6")
    commands.eventually(
        lambda found: found[:4] == [(1, 2), (2, 3), (3, 1), (1, 3)] and list_sizes(found) == [2] * 6
    )


def test_last_of_several_instructions_applies_with_warning(commands: TopicCommands) -> None:
    commands.create((1,))
    entries = ", ".join(f"{{topic: {commands.name}, partitions: {count}}}" for count in (9, 2))
    (commands.line.folder / "twice.yaml").write_text(f"topics: [{entries}]\n")
    ran = commands("alter", "--from-file", "twice.yaml")
    assert f"Topic '{commands.name}' was requested several times. kdeclare uses only the last" in ran.out
    commands.eventually(lambda found: len(found) == 2)


def test_results_are_reported_per_topic(commands: TopicCommands) -> None:
    commands.create((1,), (2,))
    new = commands.bed.delete_at_end(commands.bed.name())
    ran = commands("create", commands.name, new, "--partitions", "1", "--format", "json", code=5)
    found = {item["resource"]: item["result"] for item in json.loads(ran.out)["results"]}
    assert found == {f"Topic/{commands.name}": "failed", f"Topic/{new}": "created"}


@case("KIP4-08")
def test_alter_is_verified_from_metadata(commands: TopicCommands) -> None:
    commands.create((1, 2))
    ran = commands.alter("--replica-assignment", "2:3,3:1", "--format", "json")
    document = json.loads(ran.out)
    (item,) = document["results"]
    assert (item["result"], item["not_seen"]) == ("altered", [])
    assert {name: item["seen"][name] for name in ("partitions", "factors")} == {
        "partitions": 2,
        "factors": [2],
    }
    assert document["verified_seconds"] >= 0


def test_delete_succeeds_and_fails_for_missing_topic(commands: TopicCommands) -> None:
    commands.create((1,))
    commands("delete", commands.name)

    def check_gone() -> None:
        assert commands.name not in commands.bed.cluster.topics([commands.name])

    commands.bed.eventually(check_gone)
    assert "There is no topic" in commands("delete", commands.name, code=1).err
