"""``kdeclare reassign`` reports every partition that a policy denies."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine, CommandResult


@pytest.fixture
def tool(kdeclare: CommandLine) -> CommandLine:
    """Two topics on brokers 1 and 2, whose reassignments continue until a tick."""
    topics = [NewTopic(name, None, None, {0: (1, 2)}, {}) for name in ("foo", "bar")]
    kdeclare.cluster.create_topics(topics)
    kdeclare.cluster.tick_on_poll = False
    kdeclare.cluster.move_ticks = 1
    return kdeclare


def deny_foo(k: CommandLine) -> None:
    k.write("manifests/hands-off.yaml", "Policy", "hands-off", rule="topic != 'foo'", message="hands off foo")


def run_reassign(k: CommandLine, action: str, *topics: str, options: tuple[str, ...] = ()) -> CommandResult:
    """Move partition 0 of topics to brokers 1 and 3, or cancel that."""
    entries: list[Mapping[str, Any]] = [{"topic": t, "partition": 0, "replicas": [1, 3]} for t in topics]
    file = k.folder / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": entries}))
    return k("reassign", action, "--reassignment-json-file", file, "--yes", *options)


def list_moves(k: CommandLine) -> set[str]:
    return {str(partition) for partition in k.cluster.moves()}


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_denied_cancel_reports_policy(tool: CommandLine, options: tuple[str, ...]) -> None:
    assert run_reassign(tool, "--execute", "foo").code == 0
    deny_foo(tool)
    ran = run_reassign(tool, "--cancel", "foo", options=options)
    assert ran.code == 3
    assert "active" not in ran.out
    assert "Error cancelling partition reassignments" in ran.err
    assert "foo: hands off foo" in ran.err
    assert list_moves(tool) == {"foo-0"}


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_partly_denied_cancel_reports_both_parts(tool: CommandLine, options: tuple[str, ...]) -> None:
    assert run_reassign(tool, "--execute", "foo", "bar").code == 0
    deny_foo(tool)
    ran = run_reassign(tool, "--cancel", "foo", "bar", options=options)
    assert ran.code == 3
    assert ran.out.startswith("Successfully cancelled partition reassignment for: bar-0\n")
    assert "active" not in ran.out
    assert "foo: hands off foo" in ran.err
    assert list_moves(tool) == {"foo-0"}


def test_cancel_without_moves_is_not_denied(tool: CommandLine) -> None:
    deny_foo(tool)
    ran = run_reassign(tool, "--cancel", "foo")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("None of the specified partition reassignments are active.\n")


def test_plan_marks_denied_move_without_manifest_hint(tool: CommandLine) -> None:
    deny_foo(tool)
    ran = run_reassign(tool, "--execute", "foo", "bar")
    assert ran.code == 3
    assert "1 to change (1 partition to move), 1 topic denied." in ran.err
    rows = {line.split()[0]: line for line in ran.err.splitlines() if line.startswith("      replicas.")}
    assert rows["replicas.foo-0"].endswith("  denied")
    assert not rows["replicas.bar-0"].endswith("denied")
    assert "--override-policy" in ran.err
    assert "manifest" not in ran.err
    assert tool.cluster.partition(TopicPartition("foo", 0)).replicas == (1, 2)


def test_denied_rollback_has_no_manifest_hint(tool: CommandLine) -> None:
    for retention in (1, 2):
        tool.topic("foo", partitions=1, configs={"retention.ms": retention})
        assert tool("apply", "--yes", "--adopt").code == 0
    deny_foo(tool)
    ran = tool("rollback", "--yes")
    assert ran.code == 3
    assert "hint: Ask the owners of the policy" in ran.out
    assert "change the manifest" not in ran.out
    assert "everything else is done" not in ran.out


def test_history_marks_runs_with_policy_override(tool: CommandLine) -> None:
    tool.topic("bar", partitions=2)
    assert tool("apply", "--yes", "--adopt").code == 0
    deny_foo(tool)
    tool.topic("foo", partitions=2)
    overridden = tool("apply", "--yes", "--adopt", "--override-policy", "hands-off", "--reason", "agreed")
    assert overridden.code == 0
    _, last, first = tool("history").out.splitlines()
    assert last.endswith(" (1 denial overridden)")
    assert "overridden" not in first
    runs = json.loads(tool("history", "--format", "json").out)["runs"]
    assert [run["overridden"] for run in runs] == [1, 0]
