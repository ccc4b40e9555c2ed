"""Records flow from a file to a file while `kdeclare apply` changes what they flow through.

None is lost, and none is repeated: Kafka Connect delivers at least once, but all these changes let tasks
commit their offsets before they stop.
"""

import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.providers.schema_registry.client.rest import open_rest_registry
from kdeclare.sandbox import SandboxStatus
from tests.kafka.connect.workers import wait_for_result
from tests.kafka.connectors.connector_project import ConnectorProject, await_connector, is_running

pytestmark = pytest.mark.kafka

LINES_PER_S = 500
STEP_S = 0.02
KEYSTORE = "listeners.https.ssl.keystore.location"
SOURCE, SINK = "source", "sink"


class Writer:
    """Appends numbered lines to a file.

    count: the number of lines so far.
    """

    def __init__(self, file: Path) -> None:
        self.count = 0
        self._file = file
        self._stop = threading.Event()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Write until the block ends."""
        thread = threading.Thread(target=self._write)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _write(self) -> None:
        with self._file.open("a") as lines:
            while not self._stop.wait(STEP_S):
                for _ in range(int(LINES_PER_S * STEP_S)):
                    lines.write(f"line {self.count}\n")
                    self.count += 1
                lines.flush()


class Pipeline:
    """A source, a topic and a sink, the schema of the lines, and the config of the workers, in one project.

    Each attribute is what `apply` declares next.
    """

    def __init__(self, project: ConnectorProject, folder: Path) -> None:
        self.source_file, self.sink_file = folder / "in.txt", folder / "out.txt"
        self.source_file.touch()
        self.source_state = self.sink_state = "RUNNING"
        self.batch_size = self.poll_records = 100
        self.fields = ["id"]
        self.worker_config: dict[str, str] = {}
        self._project = project
        self._topic = project.declare_topic("lines")

    def apply(self) -> set[str]:
        """Apply everything in one plan. Return the types of the operations, all of which must be done."""
        project = self._project
        schema = project.declare_schema("lines-value", self.schema, compatibility="BACKWARD")
        project.declare_worker_config(self.worker_config)
        source = {"topic": self._topic, "file": str(self.source_file), "batch.size": str(self.batch_size)}
        sink = {
            "topics": self._topic,
            "file": str(self.sink_file),
            "consumer.override.max.poll.records": str(self.poll_records),
        }
        needs = [f"Schema/{schema}"]
        project.declare_connector(SOURCE, "FileStreamSource", source, state=self.source_state, needs=needs)
        project.declare_connector(SINK, "FileStreamSink", sink, state=self.sink_state, needs=needs)
        results = project.apply().values()
        assert {one["status"] for one in results} == {"done"}, results
        return {one["verb"] for one in results}

    @property
    def schema(self) -> dict[str, Any]:
        """The schema with a default for each field, so that all versions are compatible."""
        fields = [{"name": name, "type": "string", "default": ""} for name in self.fields]
        return {"type": "record", "name": "Line", "fields": fields}

    def count_delivered(self) -> int:
        """Return the number of lines in the file of the sink."""
        return sum(count_lines(self.sink_file).values())

    def expect_flow(self) -> None:
        """Wait until the sink writes further lines."""
        before = self.count_delivered()
        wait_for_result(lambda: self.count_delivered() > before)


def count_lines(file: Path) -> Counter[str]:
    """Return how often the file contains each complete line."""
    return Counter(file.read_text().rpartition("\n")[0].splitlines()) if file.exists() else Counter()


def read_certificates(sandbox: SandboxStatus) -> list[str]:
    """Return the certificate that each worker presents now."""
    addresses = [urlsplit(worker.url) for worker in sandbox.workers]
    return [ssl.get_server_certificate((one.hostname or "", one.port or 0)) for one in addresses]


@pytest.fixture
def project(tmp_path: Path, two_workers: SandboxStatus, registry_url: str) -> Iterator[ConnectorProject]:
    """A project with a schema registry. Everything that it declared is deleted after the test."""
    project = ConnectorProject(tmp_path / "project", two_workers, registry_url)
    yield project
    project.delete_all()


@pytest.mark.thorough
def test_no_line_is_lost_or_repeated_while_everything_changes(
    two_workers: SandboxStatus,
    cluster: ConnectCluster,
    project: ConnectorProject,
    registry_url: str,
    tmp_path: Path,
) -> None:
    keystore = f"{project.prefix}next.p12"
    for worker in two_workers.workers:
        kafka_sandbox.issue_certificate(two_workers.folder, worker.id, keystore)
    own_certificates = read_certificates(two_workers)
    pipeline = Pipeline(project, tmp_path)
    pipeline.apply()
    writer = Writer(pipeline.source_file)
    with writer.run():
        pipeline.expect_flow()

        pipeline.batch_size, pipeline.fields = 50, ["id", "text"]
        assert pipeline.apply() == {"connector.configure", "schema.register"}
        pipeline.expect_flow()

        pipeline.worker_config = {KEYSTORE: f"${{env:WORKER_FOLDER}}/{keystore}"}
        pipeline.poll_records = 50
        assert "connector.configure" in pipeline.apply()
        assert not set(own_certificates) & set(read_certificates(two_workers))
        pipeline.expect_flow()

        pipeline.source_state = "PAUSED"
        pipeline.apply()
        pipeline.source_state, pipeline.sink_state = "RUNNING", "PAUSED"
        pipeline.fields = ["id", "text", "length"]
        pipeline.apply()
        paused_at, written_at = pipeline.count_delivered(), writer.count
        time.sleep(1)
        assert pipeline.count_delivered() == paused_at
        assert writer.count > written_at

        pipeline.sink_state, pipeline.batch_size, pipeline.poll_records = "RUNNING", 200, 200
        pipeline.worker_config = {}
        pipeline.apply()
        assert read_certificates(two_workers) == own_certificates
        pipeline.expect_flow()

        pipeline.source_state, pipeline.sink_state = "STOPPED", "RUNNING"
        pipeline.apply()
        pipeline.source_state, pipeline.sink_state = "RUNNING", "STOPPED"
        pipeline.apply()
        pipeline.sink_state = "RUNNING"
        pipeline.apply()
        pipeline.expect_flow()
    expected = {f"line {number}": 1 for number in range(writer.count)}
    assert count_lines(pipeline.source_file) == expected
    assert writer.count > 1000
    wait_for_result(lambda: pipeline.count_delivered() >= writer.count)
    for name in (SOURCE, SINK):
        await_connector(cluster, project.prefix + name, is_running)
    time.sleep(1)  # for lines that would be repeated
    delivered = count_lines(pipeline.sink_file)
    assert not expected.keys() - delivered.keys(), "lost"
    assert delivered == expected, "repeated"
    registry = open_rest_registry(HttpTarget((registry_url,)))
    assert registry.list_versions(f"{project.prefix}lines-value") == (1, 2, 3)
    registry.close()
    project.expect_no_changes()
