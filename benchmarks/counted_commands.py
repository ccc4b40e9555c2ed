"""Measure commands and count their HTTP requests, in a project that has its own sandbox."""

import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kdeclare
from benchmarks.measure import Cost, environment, report, run
from kdeclare.sandbox import SandboxSettings, SandboxStatus, reset, start


@dataclass(frozen=True, slots=True)
class SentRequest:
    """An HTTP request. text: the method and the path. status: None if there was no response."""

    text: str
    is_change: bool
    status: int | None


@dataclass(frozen=True, slots=True)
class Bench:
    """A folder with a sandbox, and the environment variables for commands."""

    folder: Path
    env: Mapping[str, str]
    sandbox: SandboxStatus

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.folder / "project"

    def write_manifest(self, file: str, kind: str, name: str, spec: Mapping[str, object]) -> None:
        """Write a manifest. An existing file is replaced."""
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        (self.project / "manifests" / f"{file}.yaml").write_text(json.dumps(document))

    def write_project(self, environment: Mapping[str, object]) -> None:
        """Write the project file. environment: the settings of its environment, except the brokers."""
        (self.project / "manifests").mkdir(parents=True)
        everything = {"bootstrapServers": self.sandbox.bootstrap, **environment}
        self.write_manifest("../kdeclare", "Project", "benchmark", {"environments": {"default": everything}})

    def run_bare(self, what: str, arguments: Sequence[str]) -> Cost:
        """Run a program that sends bare requests, without kdeclare. arguments: its module and arguments."""
        return report(what, run(arguments, self.folder, self.env))

    def run_counted(
        self, what: str, arguments: Sequence[str], expected: int = 0
    ) -> tuple[Cost, list[SentRequest]]:
        """Run ``kdeclare ARGUMENTS``. Return its cost and its HTTP requests. expected: its exit code."""
        file = self.folder / "requests.json"
        command = ["benchmarks.counted_requests", str(file), *arguments]
        cost = report(what, run(command, self.project, self.env, expected))
        sent = json.loads(file.read_text())
        return cost, [
            SentRequest(f"{method} {path}", change, status) for method, path, change, status in sent
        ]


@contextmanager
def open_bench(make_settings: Callable[[Path], SandboxSettings]) -> Iterator[Bench]:
    """Start a sandbox in a temporary folder. After the block, stop the sandbox and delete the folder.

    make_settings: returns the settings of the sandbox in a folder.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stop the sandbox, too
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as temporary:
        folder = Path(temporary)
        sandbox = folder / "sandbox"
        try:
            status = start(make_settings(sandbox), lambda _: None)
            env = environment(folder / "cache")
            run(["compileall", "-q", str(Path(kdeclare.__file__).parent)], folder, env)
            yield Bench(folder, env, status)
        finally:
            reset(sandbox)


def describe_machine(load: float) -> str:
    """Return the number of cores, the version of Python, and the load before the measurement."""
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, load before {load:.1f}"


def write_figures(file: Path | None, figures: Mapping[str, Any]) -> None:
    """Write figures as JSON, unless the file is None."""
    if file is not None:
        file.write_text(json.dumps(figures, indent=2) + "\n")
