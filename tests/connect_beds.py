"""The common operations of tests of connectors, on the in-memory Connect cluster and on a real worker."""

import itertools
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.connectors_port import (
    ConnectCluster,
    ConnectorOffset,
    LiveConnector,
    TargetState,
)
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka.port import Cluster, NewTopic

SOURCE, SINK = "FileStreamSource", "FileStreamSink"


class ConnectBed:
    """The shared part of both beds.

    folder: a folder in which connectors can create files. missing_file: a file whose folder does not exist.
    """

    def __init__(self, cluster: ConnectCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.missing_file = "/no/such/dir/x"
        self._prefix = f"c{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count(1)
        self._names: set[str] = set()

    def eventually(self, check: Callable[[], None], timeout_s: float = 30.0) -> None:
        """Repeat the check until it succeeds."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return check()
            except (AssertionError, Fault):
                if time.monotonic() > deadline:
                    raise
                time.sleep(self.pause_s)

    @property
    def pause_s(self) -> float:
        """The time between two checks, in seconds."""
        raise NotImplementedError

    def create_topic(self, name: str) -> None:
        """Create a topic."""
        raise NotImplementedError

    def add_secret(self, value: str) -> str:
        """Store a value where a config provider finds it, and return its placeholder."""
        raise NotImplementedError

    def commit_offset(self, name: str) -> ConnectorOffset:
        """Let a running file source read its file, and return its offset."""
        raise NotImplementedError

    def name(self) -> str:
        """Return a new name of a connector, which is deleted at the end if it exists."""
        name = f"{self._prefix}-{next(self._numbers)}"
        self._names.add(name)
        return name

    def new_topic(self) -> str:
        """Create a topic, and return its name."""
        name = f"{self._prefix}-topic-{next(self._numbers)}"
        self.create_topic(name)
        return name

    def new_sink(self, **more: str) -> dict[str, str]:
        """Return a valid config of a file sink with a topic of its own."""
        file = str(self.folder / f"out-{next(self._numbers)}.txt")
        config = {"connector.class": SINK, "tasks.max": "1", "topics": self.new_topic(), "file": file}
        return {**config, **more}

    def new_source(self, **more: str) -> dict[str, str]:
        """Return a valid config of a file source with a topic of its own. Its file does not exist."""
        file = str(self.folder / f"in-{next(self._numbers)}.txt")
        config = {"connector.class": SOURCE, "tasks.max": "1", "file": file}
        return {**config, **({} if "topic" in more else {"topic": self.new_topic()}), **more}

    def create(
        self, config: Mapping[str, str], state: TargetState | None = None, *, name: str | None = None
    ) -> str:
        """Create a connector, wait until it has its state, and return its name."""
        name = name or self.name()
        self.send(lambda: self.cluster.create_connector(name, config, state))
        tasks = ["RUNNING"] if state in (None, TargetState.RUNNING) else []
        self.expect_states(name, (state or TargetState.RUNNING).value, *tasks)
        return name

    def send(self, change: Callable[[], object]) -> None:
        """Send a change, again as long as a rebalance rejects it."""

        def check() -> None:
            try:
                change()
            except Fault as fault:
                assert fault.error != "WORKER_NOT_READY", fault.message
                raise RuntimeError(str(fault)) from fault

        self.eventually(check)

    def describe(self, name: str) -> LiveConnector:
        """Return a connector, which must exist."""
        connector = self.cluster.describe_connector(name)
        assert connector is not None
        return connector

    def expect_states(self, name: str, state: str, *tasks: str) -> LiveConnector:
        """Wait until a connector and its tasks have these states, and keep them for some checks."""
        stable_checks = 3

        def check() -> None:
            for _ in range(stable_checks):
                seen = self.describe(name)
                assert (seen.state, tuple(task.state for task in seen.tasks)) == (state, tasks), seen
                time.sleep(self.pause_s)

        self.eventually(check)
        return self.describe(name)

    def clean(self) -> None:
        """Delete the connectors that were created, and their offsets."""
        for name in sorted(self._names):
            if self.cluster.describe_connector(name) is not None:
                self.send(lambda name=name: self.cluster.delete_connector(name))  # type: ignore[misc]


class MemoryConnectBed(ConnectBed):
    """The in-memory Connect cluster."""

    pause_s = 0.0

    def __init__(self, folder: Path) -> None:
        self.memory = MemoryConnectCluster(topics=())
        super().__init__(self.memory, folder)

    def create_topic(self, name: str) -> None:
        """See `ConnectBed.create_topic`."""
        assert self.memory.topics is not None
        self.memory.topics.add(name)

    def add_secret(self, value: str) -> str:
        """See `ConnectBed.add_secret`."""
        placeholder = f"${{file:/secrets.properties:key{next(self._numbers)}}}"
        self.memory.placeholders[placeholder] = value
        return placeholder

    def commit_offset(self, name: str) -> ConnectorOffset:
        """See `ConnectBed.commit_offset`."""
        offset = ConnectorOffset({"filename": self.describe(name).config["file"]}, {"position": 8})
        self.memory.set_offsets(name, (offset,))
        return offset


class RealConnectBed(ConnectBed):
    """A real Connect worker."""

    pause_s = 0.1

    def __init__(self, cluster: ConnectCluster, kafka: Cluster, folder: Path) -> None:
        super().__init__(cluster, folder)
        self._kafka = kafka

    def create_topic(self, name: str) -> None:
        """See `ConnectBed.create_topic`."""
        self._kafka.create_topics([NewTopic(name, 1, 1, None, {})])

    def add_secret(self, value: str) -> str:
        """See `ConnectBed.add_secret`."""
        file = self.folder / f"secrets-{next(self._numbers)}.properties"
        file.write_text(f"key={value}\n", encoding="utf-8")
        return f"${{file:{file}:key}}"

    def commit_offset(self, name: str) -> ConnectorOffset:
        """See `ConnectBed.commit_offset`."""
        file = self.describe(name).config["file"]
        Path(file).write_text("a line\nb\n", encoding="utf-8")
        expected = ConnectorOffset({"filename": file}, {"position": 9})

        def check() -> None:
            assert self.cluster.read_offsets(name) == (expected,)

        self.eventually(check, 90.0)  # workers commit offsets once per minute, and when a task stops
        return expected


AnyConnectBed = MemoryConnectBed | RealConnectBed
