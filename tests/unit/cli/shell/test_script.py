"""Lines from a pipe or a file."""

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kdeclare.cli.interactive.line_runner import join_continued_lines
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.port import Cluster
from tests.unit.cli.command_line import CommandLine, CommandResult


def run_script(kdeclare: CommandLine, *lines: str, options: tuple[str, ...] = ()) -> CommandResult:
    """Run a script and return its result."""
    script = kdeclare.folder / "script.txt"
    script.write_text("".join(f"{line}\n" for line in lines))
    return kdeclare("shell", script, *options)


def run_script_process(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a script from a pipe, in a process."""
    return subprocess.run(
        [sys.executable, "-m", "kdeclare", "shell", *options],
        input=script,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
    )


def test_script_runs_lines_in_order(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    found = run_script(
        kdeclare, "# what would change", "", "kdeclare plan", "apply \\", "  --yes # now", "plan"
    )
    assert found.code == 0
    assert not found.err
    words = ("Plan for", "Plan for", "Applied to", "No changes.")
    assert [line.startswith(words) for line in found.out.splitlines()].count(True) == 4
    assert found.out.rstrip().splitlines()[-1].startswith("No changes.")
    assert kdeclare.topics == {"orders"}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("plan --nope", 64),
        ("nope", 64),
        ("plan 'a", 64),
        ("shell", 64),
        ("apply", 64),  # no terminal to ask on
        ("plan missing.yaml", 1),
        ("plan --detailed-exitcode", 2),
        ("help nope", 64),
    ],
)
def test_script_stops_at_first_failure(kdeclare: CommandLine, line: str, code: int) -> None:
    kdeclare.topic("orders")
    found = run_script(kdeclare, "validate", "", line, "apply --yes")
    assert found.code == code
    assert f"ended with exit code {code}. No later line was run." in found.err
    assert "error: Script stopped\n  Line 3" in found.err
    assert not kdeclare.topics


def test_script_failure_masks_secrets_in_line(kdeclare: CommandLine) -> None:
    found = run_script(kdeclare, "plan --config ssl.key.password=hunter2")
    assert found.code == 64
    assert "plan --config 'ssl.key.password=(sensitive)'" in found.err
    assert "hunter2" not in found.err


@pytest.mark.parametrize("word", ["exit", "quit"])
def test_script_ends_at_exit_command(kdeclare: CommandLine, word: str) -> None:
    found = run_script(kdeclare, "schema --kind Topic", word, "nope")
    assert found.code == 0
    assert json.loads(found.out)


def test_script_reports_unreadable_file(kdeclare: CommandLine) -> None:
    found = kdeclare("shell", "missing.txt")
    assert (found.code, found.err) == (
        1,
        "error: The script cannot be read\n  missing.txt: No such file or directory.\n"
        "  hint: Check the path, the permissions and the encoding (UTF-8) of the script.\n",
    )
    (kdeclare.folder / "latin.txt").write_bytes(b"plan \xe4\n")
    assert "latin.txt: The file is not UTF-8." in kdeclare("shell", "latin.txt").err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n", [(1, "a"), (2, "b")]),
        ("a\\\nb\nc", [(1, "ab"), (3, "c")]),
        ("\na \\\n b\\\n c\r\nd", [(1, ""), (2, "a  b c"), (5, "d")]),
        ("# a\\\nb", [(1, "# a\\"), (2, "b")]),
        ("a\\", [(1, "a")]),
        ("", []),
    ],
)
def test_join_continued_lines_keeps_file_line_numbers(text: str, expected: list[tuple[int, str]]) -> None:
    assert list(join_continued_lines(text.splitlines(keepends=True))) == expected


def record_connections(kdeclare: CommandLine) -> list[tuple[str, Mapping[str, str], float]]:
    """Record the clusters that are connected to from now on."""
    made: list[tuple[str, Mapping[str, str], float]] = []

    def connect(servers: str, config: Mapping[str, str], timeout_s: float, attempts: int) -> Cluster:
        made.append((servers, config, timeout_s))
        return kdeclare.cluster

    kdeclare.monkeypatch.setattr(connection, "connect_cluster", connect)
    return made


def test_script_lines_share_one_connection(kdeclare: CommandLine) -> None:
    made = record_connections(kdeclare)
    kdeclare.topic("orders")
    assert run_script(kdeclare, "validate").code == 0
    assert not made
    assert run_script(kdeclare, "plan", "apply --yes", "status", options=("--timeout", "5")).code == 0
    ((servers, _, timeout_s),) = made
    assert servers == "lab:9092"
    assert 4 < timeout_s <= 5


def test_script_line_with_other_cluster_opens_other_connection(kdeclare: CommandLine) -> None:
    made = record_connections(kdeclare)
    given = ("--bootstrap-server", "given:9092", "--state", "elsewhere")
    found = run_script(
        kdeclare, "plan", "plan --bootstrap-server other:1", "plan --env lab", "plan", options=given
    )
    assert found.code == 0
    assert [servers for servers, _, _ in made] == ["given:9092", "other:1", "lab:9092"]


def test_shell_options_apply_to_every_line(kdeclare: CommandLine) -> None:
    where = kdeclare.folder / "kdeclare.yaml"
    where.rename(kdeclare.folder / "shop.yaml")
    kdeclare.topic("orders")
    found = run_script(
        kdeclare,
        "validate",
        "apply --yes -v",
        "history",
        options=("--project", "shop.yaml", "-q", "--state", "s"),
    )
    assert found.code == 0, found.err
    assert (kdeclare.folder / "s" / "shop" / "lab" / "state.json").exists()
    assert "Valid:" in found.out


def test_script_line_restores_loggers_and_signal_handler(kdeclare: CommandLine) -> None:
    loggers = [logging.getLogger(name) for name in ("kdeclare", "kafka")]
    handler = signal.getsignal(signal.SIGINT)
    kdeclare.topic("orders")
    seen: list[list[tuple[int, bool]]] = []

    def record_and_connect(*_: object) -> Cluster:
        seen.append([(logger.level, logger.propagate) for logger in loggers])
        return kdeclare.cluster

    kdeclare.monkeypatch.setattr(connection, "connect_cluster", record_and_connect)
    assert run_script(kdeclare, "plan -v", "plan --bootstrap-server b:1").code == 0
    verbose, plain = seen
    assert [level for level, _ in verbose] == [logging.INFO, logging.INFO]
    assert plain[0][0] == logging.WARNING
    assert plain[1] == (logging.CRITICAL + 1, True), "no trouble of a kept connection between the lines"
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.slow
def test_piped_script_stops_with_exit_code_of_line(tmp_path: Path) -> None:
    found = run_script_process(tmp_path, "schema --kind Topic\n\nschema --kind Nothing\nschema\n")
    assert found.returncode == 64
    assert json.loads(found.stdout)
    assert found.stderr.endswith(
        "error: Script stopped\n"
        "  Line 3 (schema --kind Nothing) ended with exit code 64. No later line was run.\n"
        "  hint: Correct the line and run the script again, or run only the remaining lines.\n"
    )


READER = """
import sys
from kdeclare.cli import main
from kdeclare.cli.commands import lock
from kdeclare.cli.console import Console

def show(*, console: Console):
    console.out(repr(sys.stdin.read()))
    return 0

lock.show = show
sys.exit(main.main(["shell"]))
"""
"""Run a shell in which ``lock show`` reads everything from stdin."""


@pytest.mark.slow
def test_command_in_script_does_not_read_script_as_answer(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", READER], input="lock show\nyes\n", capture_output=True, text=True, cwd=tmp_path
    )
    assert found.stdout == "''"
    assert found.returncode == 64
    assert "  Line 2 (yes) ended with exit code 64." in found.stderr
