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
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import NewTopic
from tests.polling import retry_until_passes

SOURCE, SINK = "FileStreamSource", "FileStreamSink"


class ConnectBed:
    """The shared part of both beds.

    folder: a folder in which connectors can create files.
    """

    def __init__(self, cluster: ConnectCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self._prefix = f"c{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count(1)
        self._names: set[str] = set()

    def eventually(self, check: Callable[[], None], timeout_s: float = 90.0) -> None:
        """Repeat the check until it succeeds."""
        retry_until_passes(check, timeout_s, self.pause_s, errors=(AssertionError, Fault))

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

    def add_unresolvable(self) -> str:
        """Return a placeholder that a config provider cannot resolve."""
        raise NotImplementedError

    def commit_offset(self, name: str) -> ConnectorOffset:
        """Let a running file source read its file, stop it, and return its offset."""
        raise NotImplementedError

    def forbid_folder(self, file: str) -> None:
        """Let no connector create files in the folder of this file."""
        raise NotImplementedError

    def allow_folder(self, file: str) -> None:
        """Let connectors create files in the folder of this file."""
        raise NotImplementedError

    def name(self, suffix: str = "") -> str:
        """Return a new name of a connector, which is deleted at the end if it exists."""
        name = f"{self._prefix}-{next(self._numbers)}{suffix}"
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
        self.cluster.create_connector(name, config, state)
        tasks = ["RUNNING"] if state in (None, TargetState.RUNNING) else []
        self.expect_states(name, (state or TargetState.RUNNING).value, *tasks)
        return name

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
                self.cluster.delete_connector(name)


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

    def add_unresolvable(self) -> str:
        """See `ConnectBed.add_unresolvable`."""
        self.memory.unresolvable.add("${file:/missing.properties:key}")
        return "${file:/missing.properties:key}"

    def commit_offset(self, name: str) -> ConnectorOffset:
        """See `ConnectBed.commit_offset`."""
        offset = ConnectorOffset({"filename": self.describe(name).config["file"]}, {"position": 9})
        self.memory.set_offsets(name, (offset,))
        self.memory.set_state(name, TargetState.STOPPED)
        return offset

    def forbid_folder(self, file: str) -> None:
        """See `ConnectBed.forbid_folder`."""
        self.memory.missing_folders.add(str(Path(file).parent))

    def allow_folder(self, file: str) -> None:
        """See `ConnectBed.allow_folder`."""
        self.memory.missing_folders.remove(str(Path(file).parent))


class RealConnectBed(ConnectBed):
    """A real Connect worker."""

    pause_s = 0.1

    def __init__(self, cluster: ConnectCluster, kafka: Cluster, folder: Path) -> None:
        super().__init__(RetryingConnectCluster(cluster), folder)
        self._kafka = kafka

    def create_topic(self, name: str) -> None:
        """See `ConnectBed.create_topic`."""
        self._kafka.create_topics([NewTopic(name, 1, 1, None, {})])

    def add_secret(self, value: str) -> str:
        """See `ConnectBed.add_secret`."""
        file = self.folder / f"secrets-{next(self._numbers)}.properties"
        file.write_text(f"key={value}\n", encoding="utf-8")
        return f"${{file:{file}:key}}"

    def add_unresolvable(self) -> str:
        """See `ConnectBed.add_unresolvable`."""
        return f"${{file:{self.folder / 'missing.properties'}:key}}"

    def commit_offset(self, name: str) -> ConnectorOffset:
        """See `ConnectBed.commit_offset`."""
        file = self.describe(name).config["file"]
        Path(file).write_text("a line\nb\n", encoding="utf-8")
        expected = ConnectorOffset({"filename": file}, {"position": 9})

        def check() -> None:
            self.cluster.set_state(name, TargetState.RUNNING)
            time.sleep(1.5)  # the task looks for new lines once per second
            self.cluster.set_state(name, TargetState.STOPPED)  # commits the offsets
            self.expect_states(name, "STOPPED")
            assert self.cluster.read_offsets(name) == (expected,)

        self.eventually(check)
        return expected

    def forbid_folder(self, file: str) -> None:
        """See `ConnectBed.forbid_folder`."""
        assert not Path(file).parent.exists()

    def allow_folder(self, file: str) -> None:
        """See `ConnectBed.allow_folder`."""
        Path(file).parent.mkdir()


AnyConnectBed = MemoryConnectBed | RealConnectBed
