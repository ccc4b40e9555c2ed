"""Runs that are stopped (SIGSTOP) at a request while another process takes over, in each store.

All runs are stopped at the same time, because taking over a lease takes a while.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.commands import Ran
from tests.git_remotes import create_remote
from tests.kafka.test_bad_input import Project, wait_for_exit
from tests.object_servers import create_bucket, run_s3_server
from tests.polling import wait_for
from tests.thoroughness import pick

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

STORES = ("local", "s3", "git", "kafka")
MOMENTS = ("before", "after")
LEASE_S = 12
KEY = "retention.ms"
Locate = Callable[[str, str], str]
"""Returns the location of a state, given the store and a name."""
FIRST, STOPPED, OTHER = "1000000", "2000000", "3000000"


@dataclass
class Scenario:
    """One project whose first run is stopped at its second apply."""

    project: Project
    location: str
    moment: str
    is_local: bool
    is_late: bool = False

    @property
    def topic(self) -> str:
        return self.project.name("t")

    def declare(self, retention: str) -> None:
        self.project.topics("t", configs={KEY: retention})

    def run(self, *arguments: str) -> Ran:
        """Run a command in a process of its own."""
        return wait_for_exit(self.project.start(*arguments, "--state", self.location))

    def read_retention(self, cluster: Cluster) -> str | None:
        resource = ConfigResource(ConfigScope.TOPIC, self.topic)
        entries = cluster.configs([ConfigQuery(resource, overrides=True)])[resource]
        assert isinstance(entries, dict)
        value: str | None = entries[KEY].value
        return value

    def play(self, cluster: Cluster) -> None:
        """Stop a run, let another one take over, and let the first one go on."""
        self.declare(FIRST)
        ran = self.run("apply", "--yes")
        assert ran.code is ExitCode.OK, ran
        self.declare(STOPPED)
        stopped = self._start_stopping_run()
        try:
            self._wait_until_stopped(stopped)
            self._take_over(cluster)
            stopped.send_signal(signal.SIGCONT)
            _, err = stopped.communicate(timeout=300)
        finally:
            stopped.kill()
        assert stopped.returncode == ExitCode.LOCKED, err
        assert "Traceback" not in err
        # The thread that renews the lease may notice the other holder before this request is checked.
        reasons = ["The lock was broken", *([] if self.is_local else ["The lease on the state ended"])]
        assert any(reason in err for reason in reasons), err
        self._check_outcome(cluster)

    def _start_stopping_run(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.kafka.state.stopped_run", self.moment]
        return subprocess.Popen(
            [*command, "apply", "--yes", "--state", self.location],
            cwd=self.project.folder,
            env={**os.environ, **self.project.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def _wait_until_stopped(process: "subprocess.Popen[str]") -> None:
        def is_stopped() -> bool:
            assert process.poll() is None, process.communicate()
            return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

        wait_for(is_stopped, 120)

    def _take_over(self, cluster: Cluster) -> None:
        self.declare(OTHER)
        if self.is_local:
            assert self.run("apply", "--yes").code is ExitCode.LOCKED
            assert self.run("lock", "break", "--yes").code is ExitCode.OK
        deadline = time.monotonic() + 120
        while (ran := self.run("apply", "--yes")).code is ExitCode.LOCKED:
            assert time.monotonic() < deadline, ran
            time.sleep(0.5)
        assert ran.code is ExitCode.OK, ran
        assert "Unfinished run was recovered" in ran.err, ran
        assert self.read_retention(cluster) == OTHER

    def _check_outcome(self, cluster: Cluster) -> None:
        """At most the checked request is late. The next plan finds it, and the next apply repairs it."""
        deadline = time.monotonic() + (0.5 if self.moment == "before" else 5)
        while (value := self.read_retention(cluster)) == OTHER and time.monotonic() < deadline:
            time.sleep(0.05)  # brokers show changes with a delay
        self.is_late = value == STOPPED
        # The client may also notice that its connection timed out, and send nothing.
        assert value in ((OTHER,) if self.moment == "before" else (STOPPED, OTHER))
        assert "Requests may have arrived late" in self.run("status").err
        ran = self.run("plan", "--detailed-exitcode")
        assert ran.code is (ExitCode.CHANGES if self.is_late else ExitCode.OK), ran
        ran = self.run("apply", "--yes")
        assert ran.code is ExitCode.OK, ran
        assert self.read_retention(cluster) == OTHER
        assert self.run("lock", "show").out.startswith("Not locked.")


@pytest.fixture
def s3_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with the bucket ``states``."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with run_s3_server() as url:
        create_bucket(url, "states")
        yield url


@pytest.fixture
def locate(kafka_bed: KafkaBed, s3_server: str, tmp_path: Path) -> Locate:
    """Return a function that returns the location of a state of its own in a store."""
    remote = create_remote(tmp_path / "state.git")
    topic = kafka_bed.name("-state")

    def build(store: str, name: str) -> str:
        return {
            "local": str(tmp_path / "states" / name),
            "s3": f"s3://states/{name}?region=us-east-1&endpoint={s3_server}&lease={LEASE_S}",
            "git": f"git+file://{remote}?branch=state-{name}&lease={LEASE_S}",
            "kafka": f"kafka://{topic}-{name}?lease={LEASE_S}",
        }[store]

    return build


def test_stopped_runs_send_at_most_the_checked_request(
    kafka_bed: KafkaBed, sandbox: SandboxStatus, locate: Locate, tmp_path: Path
) -> None:
    scenarios = [
        Scenario(
            Project(tmp_path / f"{store}-{moment}", sandbox.bootstrap, environment={"requestDeadline": "3s"}),
            locate(store, moment),
            moment,
            store == "local",
        )
        for number, store in enumerate(pick(("kafka",), STORES))
        for moment in pick((MOMENTS[number % 2],), MOMENTS)
    ]
    try:
        with ThreadPoolExecutor(len(scenarios)) as pool:
            list(pool.map(lambda scenario: scenario.play(kafka_bed.cluster), scenarios))
    finally:
        kafka_bed.cluster.delete_topics({scenario.topic: None for scenario in scenarios})
