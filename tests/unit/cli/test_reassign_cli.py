"""``kdeclare reassign`` on the command line: options, files, streams and exit codes."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine, CommandResult

AT = TopicPartition("foo", 0)


@pytest.fixture
def tool(kdeclare: CommandLine) -> CommandLine:
    """A cluster with one topic, whose moves continue until a tick."""
    kdeclare.cluster.create_topics([NewTopic("foo", None, None, {0: (1, 2)}, {})])
    kdeclare.cluster.tick_on_poll = False
    kdeclare.cluster.move_ticks = 1
    kdeclare.cluster.calls.clear()
    return kdeclare


def write_moves(k: CommandLine, *replicas: int, topic: str = "foo", **more: Sequence[str]) -> Path:
    """Write a file with the target replicas of partition 0."""
    entry = {"topic": topic, "partition": 0, "replicas": replicas, **more}
    path = k.folder / "moves.json"
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return path


def run_execute(
    k: CommandLine, *options: str, to: tuple[int, ...] = (1, 3), answer: str | None = None
) -> CommandResult:
    yes = [] if answer else ["--yes"]
    file = write_moves(k, *to)
    return k("reassign", "--execute", "--reassignment-json-file", file, *yes, *options, answer=answer)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"),
        ("--execute --verify", "Command must include exactly one action"),
        ("--execute", "--reassignment-json-file: --execute requires this option"),
        ("--verify", "--reassignment-json-file: --verify requires this option"),
        ("--cancel", "--reassignment-json-file: --cancel requires this option"),
        ("--generate", "--topics-to-move-json-file: --generate requires this option"),
        ("--generate --topics-to-move-json-file t.json", "--broker-list: --generate requires this option"),
        ("--list --throttle 1", """Option "[throttle]" can't be used with action "[list]"."""),
        ("--list --reassignment-json-file m.json", """can't be used with action "[list]"."""),
        ("--verify --reassignment-json-file m.json --additional", """"[additional]" can't be used"""),
        ("--verify --reassignment-json-file m.json --timeout 1", """"[timeout]" can't be used"""),
        ("--execute --reassignment-json-file m.json --preserve-throttles", """can't be used with action"""),
        ("--cancel --reassignment-json-file m.json --broker-list 1", """"[broker-list]" can't be used"""),
        ("--execute --reassignment-json-file m.json --throttle 0", "0 would stop the moves"),
        ("--execute --reassignment-json-file m.json --throttle fast", "'--throttle'"),
        ("--execute --reassignment-json-file m.json --timeout -1", "--timeout"),
        ("--list now", "now"),
    ],
)
def test_reassign_rejects_wrong_usage(tool: CommandLine, line: str, said: str) -> None:
    ran = tool("reassign", *line.split())
    assert (ran.code, ran.out) == (64, "")
    assert said in ran.err
    assert "Try 'kdeclare reassign --help'." in ran.err
    assert not tool.cluster.requests()


def test_execute_with_throttle_minus_one_sets_no_throttle(tool: CommandLine) -> None:
    assert run_execute(tool, "--throttle", "-1", "--replica-alter-log-dirs-throttle", "-1").code == 0
    assert not tool.cluster.requests("alter_configs")


def test_execute_separates_stdout_and_stderr(tool: CommandLine) -> None:
    ran = run_execute(tool, "--throttle", "1000")
    assert ran.code == 0
    assert ran.out.startswith("Current partition replica assignment\n\n{")
    assert ran.out.endswith(
        "The inter-broker throttle limit was set to 1000 B/s\n"
        "Successfully started partition reassignment for foo-0\n"
    )
    assert "replicas.foo-0" in ran.err, "the plan goes to stderr"
    assert "use kdeclare rollback" in ran.err
    assert tool.cluster.partition(AT).replicas == (1, 3, 2)


def test_execute_quiet_prints_kafka_tool_output_only(tool: CommandLine) -> None:
    ran = run_execute(tool, "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "Successfully started partition reassignment for foo-0"


def test_execute_and_cancel_ask_for_confirmation(tool: CommandLine) -> None:
    ran = run_execute(tool, answer="no\n")
    assert ran.code == 1
    assert "Only 'yes' is accepted" in ran.err
    assert ran.out.endswith("during rollback\n")
    assert not tool.cluster.requests()
    assert run_execute(tool, answer="yes\n").code == 0
    ran = tool("reassign", "--cancel", "--reassignment-json-file", "moves.json", answer="yes\n")
    assert "Only 'yes' is accepted" in ran.err
    assert ran.out.startswith("Successfully cancelled partition reassignment for: foo-0\n")


def test_execute_without_terminal_needs_yes(tool: CommandLine) -> None:
    ran = tool("reassign", "--execute", "--reassignment-json-file", write_moves(tool, 1, 3))
    assert ran.code == 64
    assert "--yes" in ran.err
    assert not tool.cluster.requests()


def test_cancel_without_moves_does_not_ask(tool: CommandLine) -> None:
    ran = tool("reassign", "--cancel", "--reassignment-json-file", write_moves(tool, 1, 3))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "None of the specified partition reassignments are active.\n"
        "None of the specified partition moves are active.\n"
    )


def test_verify_needs_no_confirmation(tool: CommandLine) -> None:
    run_execute(tool, "--throttle", "1000")
    file = ("--reassignment-json-file", "moves.json")
    ran = tool("reassign", "--verify", *file)
    assert (ran.code, ran.out.splitlines()[1:]) == (
        0,
        ["Reassignment of partition foo-0 is still in progress.", ""],
    )
    tool.cluster.tick()
    ran = tool("reassign", "--verify", *file, "--preserve-throttles")
    assert (ran.code, ran.out.splitlines()[1:]) == (0, ["Reassignment of partition foo-0 is completed.", ""])
    ran = tool("reassign", "--verify", *file)
    assert ran.out.splitlines()[3:] == [
        "Clearing broker-level throttles on brokers 1,2,3",
        "Clearing topic-level throttles on topic foo",
    ]
    write_moves(tool, 2, 1)
    ran = tool("reassign", "--verify", *file)
    assert ran.code == 0
    assert "but replica set is 1,3 rather than 2,1." in ran.out


def test_execute_is_in_history_and_can_be_rolled_back(tool: CommandLine) -> None:
    tool.cluster.move_ticks = 0
    run_execute(tool)
    runs = json.loads(tool("history", "--format", "json").out)["runs"]
    assert runs[0]["command"].startswith("kdeclare reassign --execute")
    ran = tool("rollback", "--yes")
    assert ran.code == 0
    assert tool.cluster.partition(AT).replicas == (1, 2)


def test_execute_accepts_output_of_generate(tool: CommandLine) -> None:
    topics = tool.folder / "topics.json"
    topics.write_text('{"topics": [{"topic": "foo"}], "version": 1}')
    ran = tool("reassign", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,3")
    assert (ran.code, ran.err) == (0, "")
    (tool.folder / "moves.json").write_text(ran.out.splitlines()[-1])
    ran = tool("reassign", "--execute", "--reassignment-json-file", "moves.json", "--yes")
    assert ran.code == 0
    assert set(tool.cluster.partition(AT).replicas) == {1, 2, 3}, "2 is being removed"


def test_execute_uses_throttle_of_environment(tool: CommandLine) -> None:
    lab = {"bootstrapServers": "lab:9092", "reassignments": {"throttle": "1KiB/s", "batchSize": 1}}
    tool.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    assert "The inter-broker throttle limit was set to 1024 B/s\n" in run_execute(tool).out


def repeat_execute(k: CommandLine) -> CommandResult:
    run_execute(k)
    return run_execute(k)


def execute_changed_factor(k: CommandLine) -> CommandResult:
    return run_execute(k, "--disallow-replication-factor-change", to=(1,))


def execute_unknown_broker(k: CommandLine) -> CommandResult:
    return run_execute(k, to=(1, 9))


def verify_missing_file(k: CommandLine) -> CommandResult:
    return k("reassign", "--verify", "--reassignment-json-file", "nowhere.json")


def verify_binary_file(k: CommandLine) -> CommandResult:
    (k.folder / "bad.json").write_bytes(b"\xff\xfe")
    return k("reassign", "--verify", "--reassignment-json-file", "bad.json")


def execute_invalid_file(k: CommandLine) -> CommandResult:
    return run_execute(k, to=())


def generate_with_invalid_brokers(k: CommandLine) -> CommandResult:
    (k.folder / "topics.json").write_text("{}")
    return k("reassign", "--generate", "--topics-to-move-json-file", "topics.json", "--broker-list", "1, 2")


def execute_refused_move(k: CommandLine) -> CommandResult:
    k.cluster.faults.fail(Fault("INVALID_REPLICA_ASSIGNMENT", "Not today."), method="reassign", item="foo-0")
    return run_execute(k)


def execute_locked_state(k: CommandLine) -> CommandResult:
    with LocalStore(k.folder / "state" / "shop" / "lab").lock("kdeclare apply, by someone else"):
        return run_execute(k)


def execute_with_late_directories(k: CommandLine) -> CommandResult:
    """No broker shows the replica within the timeout."""
    empty = k.cluster.log_dirs([])
    k.monkeypatch.setattr(k.cluster, "log_dirs", lambda topics=None: empty)
    file = write_moves(k, 1, 2, log_dirs=["any", "/memory"])
    return k("reassign", "--execute", "--yes", "--timeout", "0", "--reassignment-json-file", file)


CASES: list[tuple[int, Callable[[CommandLine], CommandResult], str]] = [
    (1, execute_unknown_broker, "Unknown broker id 9"),
    (1, verify_missing_file, "nowhere.json: No such file or directory."),
    (1, verify_binary_file, "bad.json: the file is not UTF-8 text."),
    (1, execute_invalid_file, "Partition replica list cannot be empty"),
    (1, generate_with_invalid_brokers, 'For input string: " 2"'),
    (
        3,
        repeat_execute,
        "Cannot execute because there is an existing partition assignment.  Use --additional",
    ),
    (3, execute_changed_factor, "foo-0: The replication factor is changed from 2 to 1"),
    (5, execute_refused_move, "Error reassigning partition(s)\n  foo-0: Not today."),
    (5, execute_with_late_directories, "Timed out before log directory move could be started for: foo-0-2"),
    (6, execute_locked_state, "by someone else"),
]


@pytest.mark.parametrize(("code", "case", "said"), CASES, ids=[case.__name__ for _, case, _ in CASES])
def test_reassign_exit_code_matches_outcome(
    tool: CommandLine, code: int, case: Callable[[CommandLine], CommandResult], said: str
) -> None:
    ran = case(tool)
    assert ran.code == code, ran
    assert said in ran.err
    assert "Successfully started partition reassignment" not in ran.out or code == 5
