"""Typing commands at an in-memory cluster, in this process."""

import io
import os
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdeclare.app import workspace
from kdeclare.cli.main import main
from kdeclare.core.clock import SystemClock
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.testing import MemoryCluster


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """A person at the keyboard."""

    def isatty(self) -> bool:
        return True


@dataclass
class CommandLine:
    """A project folder, a cluster, and commands typed there."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    cluster: MemoryCluster = field(
        default_factory=lambda: MemoryCluster({1: "rack-a", 2: "rack-b", 3: "rack-c"})
    )

    def __post_init__(self) -> None:
        def connect(servers: str, config: object, timeout_s: float, door: object) -> Cluster:
            return self.cluster

        self.monkeypatch.setattr(workspace, "connect_kafka", connect)
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.setenv("COLUMNS", "100")
        self.monkeypatch.delenv("KDECLARE_DEBUG", raising=False)
        self.write("kdeclare.yaml", "Project", "shop", environments={"lab": {"bootstrapServers": "lab:9092"}})
        (self.folder / "manifests").mkdir()

    def __call__(self, *arguments: str | Path, answer: str | None = None) -> Ran:
        """Type a command. ``answer``: what a person says when asked; without, nobody is there."""
        self.monkeypatch.setattr(sys, "stdin", io.StringIO() if answer is None else Terminal(answer))
        self.capsys.readouterr()
        code = main([os.fspath(a) for a in arguments])
        captured = self.capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def hurry(self) -> None:
        """From now on what a run waits for takes no time, and clocks go on all the same."""
        slept = [0.0]

        def sleep(_: object, seconds: float) -> None:
            slept[0] += seconds

        real = time.monotonic
        self.monkeypatch.setattr(SystemClock, "sleep", sleep)
        self.monkeypatch.setattr(SystemClock, "monotonic", lambda _: real() + slept[0])
        self.monkeypatch.setattr(
            SystemClock, "now", lambda _: datetime.now(UTC) + timedelta(seconds=slept[0])
        )

    def write(self, file: str, kind: str, name: str, **spec: Any) -> Path:
        """Write a manifest."""
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        path = self.folder / file
        path.write_text(yaml.safe_dump(document))
        return path

    def topic(self, name: str, **spec: Any) -> Path:
        """Declare a topic."""
        return self.write(f"manifests/{name}.yaml", "Topic", name, **({"partitions": 1} | spec))

    @property
    def topics(self) -> set[str]:
        """What the cluster has."""
        return set(self.cluster.topics())
