"""Conformance cases for connectors, through the command line: in memory, and on a real worker.

Every case is named in the docstring of its test. The tests share a worker, so names have a prefix.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kdeclare.providers.connect.client.connectors_port import ConnectCluster, LiveConnector, TargetState
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import NewTopic
from tests.commands import Ran, run_here
from tests.jsontypes import Json

if TYPE_CHECKING:
    from kdeclare.sandbox import SandboxStatus

RECORDED = {
    "create_connector": "POST /connectors",
    "replace_config": "PUT /connectors/src/config",
    "set_state": "PUT /connectors/src/state",
    "restart_connector": "POST /connectors/src/restart",
    "delete_connector": "DELETE /connectors/src",
}


@dataclass
class ConnectorsBed:
    """A project with one Connect cluster.

    connect, kafka: the connections of another client, whose requests are not recorded.
    """

    folder: Path
    environment: Mapping[str, Json]
    connect: ConnectCluster
    kafka: Cluster
    prefix: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}-")
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "manifests").mkdir()
        spec: Json = {"manifests": ["manifests"], "environments": {"lab": self.environment}}
        self._write(self.folder / "kdeclare.yaml", "Project", "conformance", spec)

    def _write(self, file: Path, kind: str, name: str, spec: Json) -> None:
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def record(self, patch: pytest.MonkeyPatch, cluster_class: type) -> None:
        """Record the changes that commands send."""
        for method, request in RECORDED.items():
            patch.setattr(cluster_class, method, self._wrap(request, getattr(cluster_class, method)))

    def _wrap(self, request: str, send: Callable[..., object]) -> Callable[..., object]:
        def send_recorded(cluster: object, *arguments: Any, **options: Any) -> object:
            if cluster is not self.connect:
                self.requests.append(request)
            return send(cluster, *arguments, **options)

        return send_recorded

    @property
    def topic(self) -> str:
        """The name of the topic of the case."""
        return f"{self.prefix}ft"

    @property
    def source(self) -> dict[str, Any]:
        """The config of the case, as the manifest declares it."""
        return {"file": str(self.folder / "in.txt"), "topic": self.topic}

    def name(self, short: str) -> str:
        """Return a name that no other test uses."""
        return f"{self.prefix}{short}"

    def declare(self, *resources: tuple[str, str, Json]) -> None:
        """Replace all manifests. A resource is a kind, a name and a spec."""
        for old in (self.folder / "manifests").iterdir():
            old.unlink()
        for kind, name, spec in resources:
            self._write(self.folder / "manifests" / f"{kind}.yaml", kind, name, spec)

    def declare_source(self, config: Mapping[str, Json], **more: Json) -> tuple[str, str, Json]:
        """Return the declaration of the source of the cases."""
        spec: Json = {"connect": "eu", "class": "FileStreamSource", "tasksMax": 1, "config": config, **more}
        return "Connector", self.name("src"), spec

    def __call__(self, *arguments: str) -> Ran:
        """Run a command."""
        return run_here(self.folder, *arguments)

    def apply(self, expected_code: int = 0) -> dict[str, Any]:
        """Apply the manifests, and return the result as JSON. Forget earlier requests."""
        self.requests.clear()
        ran = self("apply", "--yes", "--format", "json")
        assert ran.code == expected_code, ran
        result: dict[str, Any] = json.loads(ran.out)
        return result

    def describe(self, short: str) -> LiveConnector:
        """Return a connector, which must exist."""
        found = self.connect.describe_connector(self.name(short))
        assert found is not None
        return found

    def wait_for_state(self, short: str, state: str) -> None:
        """Wait until a connector has a state, at most 30 seconds."""
        deadline = time.monotonic() + 30
        while self.describe(short).state != state:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def clean(self) -> None:
        """Delete the connectors whose names have the prefix."""
        for name in self.connect.list_connectors():
            if name.startswith(self.prefix):
                self.connect.delete_connector(name)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def bed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ConnectorsBed]:
    """A project with one Connect cluster: in memory, and a real worker."""
    if request.param == "memory":
        yield make_memory_bed(tmp_path, monkeypatch)
        return
    from kdeclare.http.target import HttpTarget
    from kdeclare.providers.connect.client.connectors_rest import RestConnectCluster, open_rest_cluster
    from kdeclare.providers.kafka.client import connect

    running: SandboxStatus = request.getfixturevalue("connect_sandbox")
    urls = tuple(worker.url for worker in running.workers)
    kafka = connect(running.bootstrap, {})
    cluster = open_rest_cluster(HttpTarget(urls, str(running.ca_file)))
    environment: Mapping[str, Json] = {
        "bootstrapServers": running.bootstrap,
        "connect": {"eu": {"urls": list(urls), "tls": {"caFile": str(running.ca_file)}}},
    }
    try:
        real_bed = ConnectorsBed(tmp_path, environment, cluster, kafka)
        real_bed.record(monkeypatch, RestConnectCluster)
        yield real_bed
        real_bed.clean()
    finally:
        cluster.close()
        kafka.close()


def make_memory_bed(folder: Path, patch: pytest.MonkeyPatch) -> ConnectorsBed:
    """Return a bed in memory, in which states need not settle."""
    from kdeclare.providers.connect import connection as connect_connection
    from kdeclare.providers.connect.connector import completion
    from kdeclare.providers.connect.testing import MemoryConnectCluster
    from kdeclare.providers.kafka import connection as kafka_connection
    from kdeclare.providers.kafka.testing import MemoryCluster

    kafka, connect = MemoryCluster(), MemoryConnectCluster()
    patch.setattr(kafka_connection, "connect_cluster", lambda *_: kafka)
    patch.setattr(connect_connection, "open_cluster", lambda *_: connect)
    patch.setattr(completion, "_SETTLE_S", 0.0)
    patch.setattr(completion, "_SETTLE_FAILURE_S", 0.0)
    environment: Mapping[str, Json] = {
        "bootstrapServers": "lab:9092",
        "connect": {"eu": {"urls": ["https://lab:8083"]}},
    }
    bed = ConnectorsBed(folder, environment, connect.elsewhere(), kafka)
    bed.record(patch, MemoryConnectCluster)
    return bed


def test_connector_waits_for_its_topic_and_apply_for_its_tasks(bed: ConnectorsBed) -> None:
    """P-CON-01."""
    topic: Json = {"partitions": 1, "replicationFactor": 1}
    bed.declare(("Topic", bed.topic, topic), bed.declare_source(bed.source, state="RUNNING"))
    planned = json.loads(bed("plan", "--format", "json").out)
    verbs = {op["id"]: op["verb"] for op in planned["operations"]}
    (creation,) = (op for op in planned["operations"] if op["verb"] == "connector.create")
    assert [verbs[id_] for id_ in creation["needs"]] == ["topic.create"]
    bed.apply()
    assert bed.requests == ["POST /connectors"]
    live = bed.describe("src")
    assert (live.state, [task.state for task in live.tasks]) == ("RUNNING", ["RUNNING"])


def test_change_is_one_put_of_the_whole_config(bed: ConnectorsBed) -> None:
    """P-CON-02."""
    bed.kafka.create_topics([NewTopic(bed.topic, 1, 1, None, {})])
    bed.declare(bed.declare_source({**bed.source, "batch.size": 10}))
    bed.apply()
    bed.declare(bed.declare_source(bed.source))
    (change,) = json.loads(bed("plan", "--format", "json").out)["changes"]
    assert [(one["path"], one["op"]) for one in change["fields"]] == [("config.batch.size", "DELETE")]
    bed.apply()
    assert bed.requests == ["PUT /connectors/src/config"]
    assert "batch.size" not in bed.describe("src").config
    bed.apply()
    assert bed.requests == []


def test_config_and_state_change_in_one_apply(bed: ConnectorsBed) -> None:
    """P-CON-03."""
    bed.kafka.create_topics([NewTopic(bed.topic, 1, 1, None, {})])
    bed.declare(bed.declare_source(bed.source))
    bed.apply()
    bed.declare(bed.declare_source({**bed.source, "batch.size": 5}, state="PAUSED"))
    planned = json.loads(bed("plan", "--format", "json").out)
    assert [op["verb"] for op in planned["operations"]] == ["connector.state", "connector.configure"]
    bed.apply()
    assert bed.requests == ["PUT /connectors/src/state", "PUT /connectors/src/config"]
    bed.wait_for_state("src", "PAUSED")
    assert bed.describe("src").config["batch.size"] == "5"


def test_bad_config_is_an_error_of_the_plan_at_its_line(bed: ConnectorsBed) -> None:
    """P-CON-04."""
    bed.declare(bed.declare_source({"file": "in.txt"}, tasksMax=0))
    ran = bed("plan", "--format", "json")
    assert ran.code == 1
    errors = [one for one in json.loads(ran.out)["diagnostics"] if one["severity"] == "error"]
    lines = (bed.folder / "manifests" / "Connector.yaml").read_text().splitlines()
    by_line = {lines[error["place"]["line"] - 1].strip(): error["detail"] for error in errors}
    assert by_line.keys() == {"tasksMax: 0", "config:"}
    assert "topic" in by_line["config:"]
    assert bed("apply", "--yes").code == 1
    assert bed.requests == []


def test_task_that_fails_ends_the_wait(bed: ConnectorsBed) -> None:
    """P-CON-05."""
    bed.kafka.create_topics([NewTopic(bed.topic, 1, 1, None, {})])
    config: Json = {"topics": bed.topic, "file": "/no/such/dir/x"}
    spec: Json = {"connect": "eu", "class": "FileStreamSink", "tasksMax": 1, "config": config}
    bed.declare(("Connector", bed.name("sink"), spec))
    result = bed.apply(expected_code=5)
    (failed,) = (one for one in result["operations"] if one["status"] == "failed")
    assert failed["id"].startswith("connector.create:")
    assert "Couldn't find or create file" in failed["message"]
    assert "\n" not in failed["message"]


def test_state_that_another_client_changed_is_restored(bed: ConnectorsBed) -> None:
    """A pause by another client is drift if the manifest declares the state."""
    bed.kafka.create_topics([NewTopic(bed.topic, 1, 1, None, {})])
    bed.declare(bed.declare_source(bed.source, state="RUNNING"))
    bed.apply()
    bed.connect.set_state(bed.name("src"), TargetState.PAUSED)
    bed.wait_for_state("src", "PAUSED")
    bed.apply()
    assert bed.requests == ["PUT /connectors/src/state"]
    assert bed.describe("src").state == "RUNNING"
