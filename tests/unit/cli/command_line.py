"""Run commands on an in-memory cluster, in this process."""

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO, cast

import pytest
import yaml

from kdeclare.cli.main import main
from kdeclare.core.clock import SystemClock
from kdeclare.core.provider.registry import find_api_version
from kdeclare.providers.connect import connection as connect
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.terminal import CTRL_C, CTRL_D


@dataclass(frozen=True)
class CommandResult:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """A user at the keyboard."""

    def isatty(self) -> bool:
        return True


@contextmanager
def open_keyboard(typed: str) -> Iterator[TextIO]:
    """Yield the input of a terminal at which ``typed`` is typed; CTRL_C is pressed at the question."""
    master, terminal = os.openpty()
    seen = threading.Event()
    with os.fdopen(master, "wb", buffering=0), os.fdopen(terminal) as stdin, ThreadPoolExecutor(1) as hand:
        if typed != CTRL_C:
            os.write(master, (typed + CTRL_D + CTRL_D).encode())
            yield stdin
            return
        pressed = hand.submit(_press_ctrl_c, master, seen)
        yield stdin
        seen.set()
        assert pressed.result(), "Ctrl-C was not seen for 60 s"


def _press_ctrl_c(master: int, seen: threading.Event) -> bool:
    """Send the signal to this thread, so that it does not interrupt a blocking read of the main thread."""
    while "Only 'yes' is accepted" not in cast("io.StringIO", sys.stderr).getvalue():
        time.sleep(0.01)
    time.sleep(0.05)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    in_time = seen.wait(60)
    os.write(master, b"no\n")  # otherwise a pending read would never end
    return in_time


@dataclass
class CommandLine:
    """A project folder, a cluster, Connect workers by their URLs, and commands typed there."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    cluster: MemoryCluster = field(
        default_factory=lambda: MemoryCluster({1: "rack-a", 2: "rack-b", 3: "rack-c"})
    )
    workers: dict[tuple[str, ...], ConnectWorkers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(connection, "connect_cluster", lambda *_: self.cluster)
        self.monkeypatch.setattr(connect, "open_workers", lambda group, *_: self.workers[group.urls])
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.setenv("COLUMNS", "100")
        self.monkeypatch.delenv("KDECLARE_DEBUG", raising=False)
        self.write("kdeclare.yaml", "Project", "shop", environments={"lab": {"bootstrapServers": "lab:9092"}})
        (self.folder / "manifests").mkdir()

    def __call__(
        self, *arguments: str | Path, answer: str | None = None, piped: str | bytes = ""
    ) -> CommandResult:
        """Run a command.

        answer: the answer at the prompt; None means that stdin is not a terminal.
        piped: the content of stdin without a terminal.
        """
        self.capsys.readouterr()
        pipe = io.TextIOWrapper(io.BytesIO(piped if isinstance(piped, bytes) else piped.encode()))
        with nullcontext(pipe) if answer is None else open_keyboard(answer) as stdin:
            self.monkeypatch.setattr(sys, "stdin", stdin)
            code = main([os.fspath(a) for a in arguments])
        captured = self.capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    def hurry(self) -> None:
        """Make all waits of runs take no time, while clocks continue."""
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
        document = {
            "apiVersion": find_api_version(kind),
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        path = self.folder / file
        path.write_text(yaml.safe_dump(document))
        return path

    def topic(self, name: str, **spec: Any) -> Path:
        """Declare a topic."""
        return self.write(f"manifests/{name}.yaml", "Topic", name, **({"partitions": 1} | spec))

    @property
    def topics(self) -> set[str]:
        """The names of the live topics."""
        return set(self.cluster.topics())
