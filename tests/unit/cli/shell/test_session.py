"""A user at the prompt, in this process: keys are typed, and the in-memory cluster changes."""

import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from kdeclare.app.connections import ConnectionCache
from kdeclare.app.workspace import WorkspaceOptions
from kdeclare.cli import pager
from kdeclare.cli.console import Console
from kdeclare.cli.interactive.completer import LineCompleter
from kdeclare.cli.interactive.grammar import build_grammar
from kdeclare.cli.interactive.line_runner import LineRunner
from kdeclare.cli.interactive.names import LiveNames
from kdeclare.cli.interactive.session import Session, build_prompt, shorten_name
from kdeclare.cli.invocation import ShellContext
from kdeclare.cli.options.option_groups import OutputOptions
from kdeclare.cli.pager import Pager
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.commands.completion import find_overrides
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine, CommandResult, Terminal

LEAVE = "\x04"


@pytest.fixture
def shell_context(kdeclare: CommandLine) -> Iterator[ShellContext]:
    """The settings that the lines of a shell share, for the in-memory cluster."""
    connections = ConnectionCache()
    yield ShellContext(WorkspaceOptions(), connections, OutputOptions())
    connections.close()


def run_session(kdeclare: CommandLine, shared: ShellContext, keys: str) -> CommandResult:
    """Press these keys in a session and return its result."""
    kdeclare.monkeypatch.setenv("XDG_STATE_HOME", str(kdeclare.folder / ".state"))
    kdeclare.monkeypatch.setenv("TERM", "xterm")
    kdeclare.capsys.readouterr()
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        code = Session(shared, Console(OutputOptions(), "text", ""), pipe, DummyOutput()).run()
    captured = kdeclare.capsys.readouterr()
    return CommandResult(code, captured.out, captured.err)


def test_session_runs_lines_until_exit(kdeclare: CommandLine, shell_context: ShellContext) -> None:
    kdeclare.topic("orders")
    ran = run_session(kdeclare, shell_context, f"nope\rplan\rapply --yes\rplan\r{LEAVE}")
    assert ran.code == 0
    assert "No such command 'nope'" in ran.err
    assert "1 to create" in ran.out
    assert "No changes." in ran.out
    assert kdeclare.topics == {"orders"}


@pytest.mark.parametrize("leaving", ["exit\r", "quit\r", LEAVE, "kdeclare exit\r"])
def test_session_ends_on_exit_quit_and_ctrl_d(
    kdeclare: CommandLine, shell_context: ShellContext, leaving: str
) -> None:
    assert run_session(kdeclare, shell_context, f"{leaving}nope\r").code == 0


def test_session_ctrl_c_discards_line(kdeclare: CommandLine, shell_context: ShellContext) -> None:
    ran = run_session(kdeclare, shell_context, f"nope\x03lock show\r{LEAVE}")
    assert ran.out == "Not locked.\n"
    assert "nope" not in ran.err


def test_session_joins_continued_line(kdeclare: CommandLine, shell_context: ShellContext) -> None:
    assert run_session(kdeclare, shell_context, f"lock \\\rshow\r{LEAVE}").out == "Not locked.\n"


def test_session_completes_on_tab_before_later_keys(
    kdeclare: CommandLine, shell_context: ShellContext
) -> None:
    assert run_session(kdeclare, shell_context, f"loc\t sh\t\r{LEAVE}").out == "Not locked.\n"


def test_session_recalls_earlier_line(kdeclare: CommandLine, shell_context: ShellContext) -> None:
    run_session(kdeclare, shell_context, f"lock show\r{LEAVE}")
    kdeclare.monkeypatch.setattr(LineRunner, "run", lambda lines, line: print(f"<{line}>"))
    assert "<lock show>" in run_session(kdeclare, shell_context, f"\x10\r{LEAVE}").out  # Ctrl-P


def test_session_reports_line_with_secret_as_not_saved(
    kdeclare: CommandLine, shell_context: ShellContext
) -> None:
    ran = run_session(kdeclare, shell_context, f"plan --config ssl.key.password=x\r{LEAVE}")
    assert "not written to the history" in ran.err


def test_session_reports_unwritable_history(kdeclare: CommandLine, shell_context: ShellContext) -> None:
    (kdeclare.folder / ".state").touch()
    assert "History not saved" in run_session(kdeclare, shell_context, LEAVE).err


def test_session_shows_help_of_commands_and_shell(kdeclare: CommandLine, shell_context: ShellContext) -> None:
    ran = run_session(kdeclare, shell_context, f"help\rhelp lock show\rhelp exit\rhelp nope\rclear\r{LEAVE}")
    assert "Shell commands:" in ran.out
    assert "Usage: kdeclare lock show" in ran.out
    assert "Leave the shell, like quit and Ctrl-D." in ran.out
    assert "No such command 'nope'" in ran.err


def format_prompt(shared: ShellContext) -> str:
    return "".join(text for _, text, *_ in build_prompt(shared, colours=False))


def test_prompt_names_project_environment_and_cluster(
    kdeclare: CommandLine, shell_context: ShellContext
) -> None:
    assert format_prompt(shell_context) == "shop/lab lab:9092> "
    given = replace(shell_context, defaults=WorkspaceOptions(bootstrap_server="a:1,b:2"))
    assert format_prompt(given) == "shop/lab a:1,…> "
    (kdeclare.folder / "kdeclare.yaml").write_text("kind: [")
    assert format_prompt(shell_context) == "kdeclare> "
    (kdeclare.folder / "kdeclare.yaml").unlink()
    assert format_prompt(shell_context) == "kdeclare> "
    assert format_prompt(given) == "kdeclare a:1,…> "


def test_shorten_name_truncates_long_names() -> None:
    assert shorten_name("broker.example.com:9092") == "broker.example.com:9092"
    assert shorten_name("a" * 50) == "a" * 39 + "…"


def test_live_names_come_from_cluster_state_and_project(
    kdeclare: CommandLine, shell_context: ShellContext
) -> None:
    kdeclare.topic("orders", configs={"retention.ms": 1000})
    kdeclare("apply", "--yes")
    names = LiveNames(shell_context)
    assert names.live("Topic") == ("orders",)
    assert names.live("BrokerConfig") == ("cluster-default", "1", "2", "3")
    assert find_overrides(names, ConfigResource(ConfigScope.TOPIC, "orders")) == {"retention.ms": "1000"}
    assert find_overrides(names, ConfigResource(ConfigScope.TOPIC, "nope")) == {}
    assert names.declared() == ("Topic/orders",)
    assert len(names.runs()) == 1
    assert names.environments() == ("lab",)


def test_live_names_are_refreshed_after_timeout_or_command(
    kdeclare: CommandLine, shell_context: ShellContext
) -> None:
    now = 0.0
    names = LiveNames(shell_context, lambda: now)

    def create(name: str) -> None:
        kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {})])

    create("a")
    assert names.live("Topic") == ("a",)
    create("b")
    assert names.live("Topic") == ("a",)
    now = 60.0
    assert names.live("Topic") == ("a", "b")
    create("c")
    names.forget()
    assert names.live("Topic") == ("a", "b", "c")


def test_live_names_of_unreachable_cluster_are_empty(
    kdeclare: CommandLine, shell_context: ShellContext
) -> None:
    asked: list[float] = []

    def raise_unreachable(servers: str, config: object, timeout_s: float, attempts: int) -> object:
        asked.append(timeout_s)
        raise KdeclareError(error("unreachable", "Cluster unreachable"))

    kdeclare.monkeypatch.setattr(connection, "connect_cluster", raise_unreachable)
    names = LiveNames(replace(shell_context, connections=ConnectionCache()))
    assert names.live("Topic") == ()
    assert names.live("Topic") == ()
    assert len(asked) == 1
    assert asked[0] < 10
    (kdeclare.folder / "kdeclare.yaml").write_text("kind: [")
    assert names.environments() == ()


def test_session_completes_paths_below_home(
    kdeclare: CommandLine, shell_context: ShellContext, tmp_path: Path
) -> None:
    kdeclare.monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("nothing")
    ran = run_session(kdeclare, shell_context, f"show ~/mi\t\r{LEAVE}")
    assert "mine.yaml" in ran.err


def test_missing_pager_ends_line_but_not_shell(kdeclare: CommandLine, shell_context: ShellContext) -> None:
    kdeclare.monkeypatch.setattr(pager, "fits", lambda *_: False)
    kdeclare.monkeypatch.setattr(sys, "stdout", Terminal())
    console = Console(OutputOptions(), "text", "", Pager(("no-such-pager",)))
    assert LineRunner(shell_context, console).run("help") == 1
    assert "no-such-pager" in kdeclare.capsys.readouterr().err


def test_live_names_are_read_by_one_thread_at_a_time(
    kdeclare: CommandLine, shell_context: ShellContext
) -> None:
    """Under load, one completion continued while the next one began on the same connection."""
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    names = LiveNames(shell_context)
    running: list[int] = []
    most: list[int] = []
    described = kdeclare.cluster.describe

    def describe_slowly() -> ClusterInfo:
        running.append(1)
        most.append(len(running))
        time.sleep(0.05)
        running.pop()
        return described()

    kdeclare.monkeypatch.setattr(kdeclare.cluster, "describe", describe_slowly)
    threads = [Thread(target=names.live, args=("BrokerConfig",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert names.live("BrokerConfig") == ("cluster-default", "1", "2", "3")


def test_failed_completion_prints_nothing(
    shell_context: ShellContext, caplog: pytest.LogCaptureFixture
) -> None:
    class BrokenNames(LiveNames):
        def live(self, kind: str) -> tuple[str, ...]:
            raise RuntimeError("two at once")

    completer = LineCompleter(build_grammar, BrokenNames(shell_context))
    with caplog.at_level(logging.INFO):
        assert list(completer.get_completions(Document("topic describe "), CompleteEvent())) == []
    assert "completion of" in caplog.text
