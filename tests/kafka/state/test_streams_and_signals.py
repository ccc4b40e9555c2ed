"""Closed streams and signals during applies, with a state in each store."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.commands import Ran
from tests.kafka.state.test_stopped_runs import STORES, Locate, locate, s3_server
from tests.kafka.test_bad_input import Project, wait_for_exit
from tests.thoroughness import mark_rest, pick

__all__ = ["locate", "s3_server"]
pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

TOPICS = ("a", "b", "c")


@dataclass
class TeamProject:
    """A project whose state is in one of the stores."""

    project: Project
    location: str

    def declare(self, retention: int) -> None:
        self.project.topics(*TOPICS, configs={"retention.ms": retention})

    def start(self, prefix: str = "") -> "subprocess.Popen[str]":
        """Start an apply. prefix: a command of the shell that runs first, in the same process."""
        command = f'{prefix} exec "$@"'
        arguments = [sys.executable, "-m", "kdeclare", "apply", "--yes", "--state", self.location]
        return subprocess.Popen(
            ["bash", "-c", command, "bash", *arguments],
            cwd=self.project.folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> Ran:
        return wait_for_exit(self.project.start(*arguments, "--state", self.location))


def run_with_closed_streams(team: TeamProject) -> None:
    """Apply without each stream, and without all. The exit code is the only report that is left."""
    prefixes = ("exec <&- >&- 2>&-;", *pick((), ("exec <&-;", "exec >&-;", "exec 2>&-;")))
    for number, prefix in enumerate(prefixes):
        team.declare(1_000_000 + number)
        ran = wait_for_exit(team.start(prefix))
        assert ran.code is ExitCode.OK, (prefix, ran)


def run_with_reader_that_leaves(team: TeamProject) -> None:
    """Apply in a pipe whose reader ends at once: what was begun is finished and recorded."""
    team.declare(2_000_000)
    process = team.start()
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    assert process.wait(120) == ExitCode.OK, errors
    assert "Traceback" not in errors


def run_with_signals(team: TeamProject) -> None:
    """Interrupt applies at the first line of output."""
    for number, sent in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
        team.declare(3_000_000 + number)
        process = team.start()
        assert process.stderr is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(sent)
        ran_out, ran_err = process.communicate(timeout=120)
        # The signal can also arrive when everything is done.
        assert process.returncode in (ExitCode.INTERRUPTED, ExitCode.OK), (sent, ran_out, ran_err)
        assert "Traceback" not in ran_err


ACTS: Mapping[str, Callable[[TeamProject], None]] = {
    "signals": run_with_signals,
    "closed streams": run_with_closed_streams,
    "reader that leaves": run_with_reader_that_leaves,
}


@pytest.mark.parametrize("act", mark_rest(ACTS, 1))
def test_run_ends_in_order_and_leaves_no_lock(
    kafka_bed: KafkaBed, sandbox: SandboxStatus, locate: Locate, tmp_path: Path, act: str
) -> None:
    teams = [
        TeamProject(Project(tmp_path / store, sandbox.bootstrap), locate(store, "streams"))
        for store in pick(("kafka",), STORES)
    ]

    def play(team: TeamProject) -> None:
        team.declare(500_000)
        assert team.run("apply", "--yes").code is ExitCode.OK
        ACTS[act](team)
        assert team.run("lock", "show").out.startswith("Not locked.")
        ran = team.run("apply", "--yes")
        assert ran.code is ExitCode.OK, ran
        assert team.run("plan", "--detailed-exitcode").code is ExitCode.OK

    try:
        with ThreadPoolExecutor(len(teams)) as pool:
            list(pool.map(play, teams))
    finally:
        names = [team.project.name(topic) for team in teams for topic in TOPICS]
        kafka_bed.cluster.delete_topics(dict.fromkeys(names))
