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
from kdeclare.cli.options import OutputOptions
from kdeclare.cli.pager import Pager
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.commands.completion import find_overrides
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import NewTopic
from tests.unit.cli.command_line import CommandLine, Ran, Terminal

LEAVE = "\x04"


@pytest.fixture
def shared(kdeclare: CommandLine) -> Iterator[ShellContext]:
    """The settings that the lines of a shell share, for the in-memory cluster."""
    connections = ConnectionCache()
    yield ShellContext(WorkspaceOptions(), connections, OutputOptions())
    connections.close()


def typed(kdeclare: CommandLine, shared: ShellContext, keys: str) -> Ran:
    """Press these keys in a session and return its result."""
    kdeclare.monkeypatch.setenv("XDG_STATE_HOME", str(kdeclare.folder / ".state"))
    kdeclare.monkeypatch.setenv("TERM", "xterm")
    kdeclare.capsys.readouterr()
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        code = Session(shared, Console(OutputOptions(), "text", ""), pipe, DummyOutput()).run()
    captured = kdeclare.capsys.readouterr()
    return Ran(code, captured.out, captured.err)


def test_lines_are_run_until_the_person_leaves(kdeclare: CommandLine, shared: ShellContext) -> None:
    kdeclare.topic("orders")
    ran = typed(kdeclare, shared, f"nope\rplan\rapply --yes\rplan\r{LEAVE}")
    assert ran.code == 0
    assert "No such command 'nope'" in ran.err
    assert "1 to create" in ran.out
    assert "No changes." in ran.out
    assert kdeclare.topics == {"orders"}


@pytest.mark.parametrize("leaving", ["exit\r", "quit\r", LEAVE, "kdeclare exit\r"])
def test_ways_to_leave(kdeclare: CommandLine, shared: ShellContext, leaving: str) -> None:
    assert typed(kdeclare, shared, f"{leaving}nope\r").code == 0


def test_ctrl_c_drops_the_line(kdeclare: CommandLine, shared: ShellContext) -> None:
    ran = typed(kdeclare, shared, f"nope\x03lock show\r{LEAVE}")
    assert ran.out == "Not locked.\n"
    assert "nope" not in ran.err


def test_a_line_that_goes_on(kdeclare: CommandLine, shared: ShellContext) -> None:
    assert typed(kdeclare, shared, f"lock \\\rshow\r{LEAVE}").out == "Not locked.\n"


def test_tab_is_heeded_before_the_keys_after_it(kdeclare: CommandLine, shared: ShellContext) -> None:
    assert typed(kdeclare, shared, f"loc\t sh\t\r{LEAVE}").out == "Not locked.\n"


def test_an_earlier_line_comes_back(kdeclare: CommandLine, shared: ShellContext) -> None:
    typed(kdeclare, shared, f"lock show\r{LEAVE}")
    kdeclare.monkeypatch.setattr(LineRunner, "run", lambda lines, line: print(f"<{line}>"))
    assert "<lock show>" in typed(kdeclare, shared, f"\x10\r{LEAVE}").out  # Ctrl-P


def test_a_word_is_said_where_a_secret_is_typed(kdeclare: CommandLine, shared: ShellContext) -> None:
    ran = typed(kdeclare, shared, f"plan --config ssl.key.password=x\r{LEAVE}")
    assert "not written to the history" in ran.err


def test_a_word_is_said_where_there_can_be_no_history(kdeclare: CommandLine, shared: ShellContext) -> None:
    (kdeclare.folder / ".state").touch()
    assert "History not saved" in typed(kdeclare, shared, LEAVE).err


def test_help(kdeclare: CommandLine, shared: ShellContext) -> None:
    ran = typed(kdeclare, shared, f"help\rhelp lock show\rhelp exit\rhelp nope\rclear\r{LEAVE}")
    assert "Shell commands:" in ran.out
    assert "Usage: kdeclare lock show" in ran.out
    assert "Leave the shell, like quit and Ctrl-D." in ran.out
    assert "No such command 'nope'" in ran.err


def said(shared: ShellContext) -> str:
    return "".join(text for _, text, *_ in build_prompt(shared, colours=False))


def test_the_prompt_names_project_environment_and_cluster(
    kdeclare: CommandLine, shared: ShellContext
) -> None:
    assert said(shared) == "shop/lab lab:9092> "
    given = replace(shared, defaults=WorkspaceOptions(bootstrap_server="a:1,b:2"))
    assert said(given) == "shop/lab a:1,…> "
    (kdeclare.folder / "kdeclare.yaml").write_text("kind: [")
    assert said(shared) == "kdeclare> "
    (kdeclare.folder / "kdeclare.yaml").unlink()
    assert said(shared) == "kdeclare> "
    assert said(given) == "kdeclare a:1,…> "


def test_long_names_are_cut() -> None:
    assert shorten_name("broker.example.com:9092") == "broker.example.com:9092"
    assert shorten_name("a" * 50) == "a" * 39 + "…"


def test_names_are_those_of_the_cluster_the_state_and_the_project(
    kdeclare: CommandLine, shared: ShellContext
) -> None:
    kdeclare.topic("orders", configs={"retention.ms": 1000})
    kdeclare("apply", "--yes")
    names = LiveNames(shared)
    assert names.live("Topic") == ("orders",)
    assert names.live("BrokerConfig") == ("cluster-default", "1", "2", "3")
    assert find_overrides(names, ConfigResource(ConfigScope.TOPIC, "orders")) == {"retention.ms": "1000"}
    assert find_overrides(names, ConfigResource(ConfigScope.TOPIC, "nope")) == {}
    assert names.declared() == ("Topic/orders",)
    assert len(names.runs()) == 1
    assert names.environments() == ("lab",)


def test_names_are_asked_for_anew_after_a_while_or_a_command(
    kdeclare: CommandLine, shared: ShellContext
) -> None:
    now = 0.0
    names = LiveNames(shared, lambda: now)

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


def test_names_of_a_cluster_that_is_away_are_none(kdeclare: CommandLine, shared: ShellContext) -> None:
    asked: list[float] = []

    def away(servers: str, config: object, timeout_s: float, attempts: int) -> object:
        asked.append(timeout_s)
        raise KdeclareError(error("unreachable", "Cluster unreachable"))

    kdeclare.monkeypatch.setattr(connection, "connect_cluster", away)
    names = LiveNames(replace(shared, connections=ConnectionCache()))
    assert names.live("Topic") == ()
    assert names.live("Topic") == ()
    assert len(asked) == 1
    assert asked[0] < 10
    (kdeclare.folder / "kdeclare.yaml").write_text("kind: [")
    assert names.environments() == ()


def test_paths_of_home_are_completed(kdeclare: CommandLine, shared: ShellContext, tmp_path: Path) -> None:
    kdeclare.monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("nothing")
    ran = typed(kdeclare, shared, f"show ~/mi\t\r{LEAVE}")
    assert "mine.yaml" in ran.err


def test_a_pager_that_is_not_there_ends_the_line_and_not_the_shell(
    kdeclare: CommandLine, shared: ShellContext
) -> None:
    kdeclare.monkeypatch.setattr(pager, "fits", lambda *_: False)
    kdeclare.monkeypatch.setattr(sys, "stdout", Terminal())
    console = Console(OutputOptions(), "text", "", Pager(("no-such-pager",)))
    assert LineRunner(shared, console).run("help") == 1
    assert "no-such-pager" in kdeclare.capsys.readouterr().err


def test_names_are_asked_for_by_one_thread_at_a_time(kdeclare: CommandLine, shared: ShellContext) -> None:
    """Under load, one completion continued while the next one began on the same connection."""
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    names = LiveNames(shared)
    running: list[int] = []
    most: list[int] = []
    described = kdeclare.cluster.describe

    def slow() -> ClusterInfo:
        running.append(1)
        most.append(len(running))
        time.sleep(0.05)
        running.pop()
        return described()

    kdeclare.monkeypatch.setattr(kdeclare.cluster, "describe", slow)
    threads = [Thread(target=names.live, args=("BrokerConfig",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert names.live("BrokerConfig") == ("cluster-default", "1", "2", "3")


def test_completion_that_fails_prints_nothing(shared: ShellContext, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(LiveNames):
        def live(self, kind: str) -> tuple[str, ...]:
            raise RuntimeError("two at once")

    completer = LineCompleter(build_grammar, Broken(shared))
    with caplog.at_level(logging.INFO):
        assert list(completer.get_completions(Document("topic describe "), CompleteEvent())) == []
    assert "no completion" in caplog.text
