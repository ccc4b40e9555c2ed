"""The command line as a process, at real brokers."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare.sandbox import SandboxStatus, status
from tests.beds import KafkaBed
from tests.commands import Ran, run_here

pytestmark = pytest.mark.kafka

PROGRAM = [sys.executable, "-m", "kdeclare"]
ASKED = "Only 'yes' is accepted: "


@dataclass(frozen=True)
class CliProject:
    """A project in a folder of its own, with one topic that nobody else has."""

    folder: Path
    bootstrap: str
    topic: str

    def declare(self, **configs: int) -> None:
        """Write the manifest."""
        lines = "".join(f"    {key.replace('_', '.')}: {value}\n" for key, value in configs.items())
        (self.folder / "topic.yaml").write_text(
            f"apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {{name: {self.topic}}}\n"
            f"spec:\n  partitions: 2\n  replicationFactor: 2\n  configs:\n{lines}"
        )

    def __call__(self, *arguments: str, stdin: str = "") -> Ran:
        """The command without a terminal."""
        return run_here(self.folder, *arguments, stdin=stdin)


@pytest.fixture
def cli_project(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[CliProject]:
    """An empty project at the sandbox; its topic is gone at the end."""
    from kdeclare.providers.kafka.client import connect

    made = CliProject(tmp_path, sandbox.bootstrap, f"cli-{uuid.uuid4().hex[:8]}")
    environments = f"{{lab: {{bootstrapServers: '{sandbox.bootstrap}'}}}}"
    (tmp_path / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        f"spec: {{manifests: [topic.yaml], environments: {environments}}}\n"
    )
    made.declare(retention_ms=1000)
    cluster = connect(sandbox.bootstrap, {})
    bed = KafkaBed(cluster, sandbox.bootstrap)
    bed.delete_at_end(made.topic)
    yield made
    bed.clean()
    cluster.close()


class TerminalProcess:
    """A process on a terminal of its own."""

    def __init__(self, here: CliProject, *arguments: str) -> None:
        self.said = ""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(here.folder)
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [*PROGRAM, *arguments])

    def wait_for(self, text: str, seconds: float = 180) -> None:
        """Read until it has been said."""
        deadline = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < deadline, self.said
            assert self._read(0.2), self.said

    def type(self, text: str) -> None:
        """Press keys; ``\\x03`` is Ctrl-C."""
        os.write(self._terminal, text.encode())

    def end(self, seconds: float = 180) -> int:
        """The exit code."""
        deadline = time.monotonic() + seconds
        while self._read(0.2):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"it does not end: {self.said}")
        _, status = os.waitpid(self.pid, 0)
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(status)

    def _read(self, seconds: float) -> bool:
        """Whether there can be more."""
        if select.select([self._terminal], [], [], seconds)[0]:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # how Linux says that nobody is at the other end
                return False
            self.said += data.decode(errors="replace")
            return bool(data)
        return True


@contextmanager
def suspend_brokers(sandbox: SandboxStatus) -> Iterator[None]:
    """Brokers that accept connections and say nothing."""
    # asked anew: another test may have killed a broker and started it again
    pids = [broker.pid for broker in status(sandbox.folder).brokers if broker.pid and broker.alive]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_plan_after_apply_has_no_changes(cli_project: CliProject) -> None:
    planned = cli_project("plan", "--detailed-exitcode")
    assert planned.code == 2, planned.err
    assert f"+ Topic/{cli_project.topic}" in planned.out
    applied = cli_project("apply", "--yes", "--format", "json")
    assert applied.code == 0, applied.err
    assert json.loads(applied.out)["counts"]["done"] == 1
    assert not applied.err
    again = cli_project("plan", "--detailed-exitcode")
    assert again.code == 0
    assert again.out.startswith("No changes.")
    cli_project.declare(retention_ms=2000)
    assert cli_project("plan", "--out", "it.plan").code == 0
    assert cli_project("apply", "it.plan", "--yes").code == 0
    assert cli_project("apply", "it.plan", "--yes").code == 4
    undone = cli_project("rollback", "--yes")
    assert undone.code == 0
    assert "2000 (2 s) → 1000 (1 s)" in undone.out
    assert cli_project("status").out.startswith("Idle.")
    assert len(json.loads(cli_project("history", "--format", "json").out)["runs"]) == 3


def test_apply_without_terminal_requires_yes(cli_project: CliProject) -> None:
    ran = cli_project("apply", stdin="yes\n")
    assert ran.code == 64
    assert "--yes" in ran.err
    assert cli_project("plan", "--detailed-exitcode").code == 2


def test_apply_asks_and_proceeds_only_after_yes(cli_project: CliProject) -> None:
    asked = TerminalProcess(cli_project, "apply")
    asked.wait_for(ASKED)
    asked.type("no\n")
    assert asked.end() == 1
    assert "Nothing was changed." in asked.said
    asked = TerminalProcess(cli_project, "apply")
    asked.wait_for(ASKED)
    asked.type("yes\n")
    assert asked.end() == 0
    assert "1 of 1 operation done" in asked.said
    assert "\x1b[" in asked.said, "colours"


def test_apply_interrupted_at_prompt_changes_nothing(cli_project: CliProject) -> None:
    asked = TerminalProcess(cli_project, "apply")
    asked.wait_for(ASKED)
    asked.type("\x03")
    assert asked.end() == 130
    assert "Nothing was changed." in asked.said


def test_apply_interrupted_once_finishes_requests(cli_project: CliProject, sandbox: SandboxStatus) -> None:
    asked = TerminalProcess(cli_project, "apply")
    asked.wait_for(ASKED)
    with suspend_brokers(sandbox):
        asked.type("yes\n")
        time.sleep(1)
        asked.type("\x03")
        asked.wait_for("Press Ctrl-C again to exit at once")
    assert asked.end() == 130
    assert "Interrupted" in asked.said
    assert cli_project("apply", "--yes").code == 0
    assert cli_project("plan", "--detailed-exitcode").code == 0


def test_apply_interrupted_twice_exits_at_once(cli_project: CliProject, sandbox: SandboxStatus) -> None:
    asked = TerminalProcess(cli_project, "apply")
    asked.wait_for(ASKED)
    with suspend_brokers(sandbox):
        asked.type("yes\n")
        time.sleep(1)
        asked.type("\x03")
        asked.wait_for("Press Ctrl-C again to exit at once")
        asked.type("\x03")
        assert asked.end(10) == 130
    assert cli_project("status").code == 0
    assert cli_project("apply", "--yes").code == 0
    assert cli_project("plan", "--detailed-exitcode").code == 0


def test_apply_is_stale_after_topic_was_deleted(cli_project: CliProject, sandbox: SandboxStatus) -> None:
    from kdeclare.providers.kafka.client import connect

    assert cli_project("apply", "--yes").code == 0
    cli_project.declare(retention_ms=2000)
    assert cli_project("plan", "--out", "it.plan").code == 0
    cluster = connect(sandbox.bootstrap, {})
    cluster.delete_topics({cli_project.topic: None})
    cluster.close()
    ran = cli_project("apply", "it.plan", "--yes")
    assert ran.code == 4
    assert cli_project.topic in ran.err
    assert "Nothing was applied." in ran.err


def test_plan_reports_closed_port_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    ran = subprocess.run(
        [*PROGRAM, "plan", ".", "--bootstrap-server", "127.0.0.1:1", "--timeout", "300"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert "127.0.0.1:1: connection refused" in ran.stderr
    assert time.monotonic() - began < 150


@pytest.mark.parametrize(("options", "seconds"), [((), 10), (("--timeout", "13"), 13)])
def test_plan_reports_silent_broker_after_timeout(
    tmp_path: Path, options: tuple[str, ...], seconds: float
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        began = time.monotonic()
        ran = subprocess.run(
            [*PROGRAM, "plan", ".", "--bootstrap-server", address, *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        took = time.monotonic() - began
    assert ran.returncode == 1
    assert address in ran.stderr
    assert "no response in time" in ran.stderr
    assert took > seconds - 1
