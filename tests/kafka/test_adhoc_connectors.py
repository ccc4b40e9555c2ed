"""`kdeclare connector` on a real Connect worker: pause, rollback, restart and describe."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.sandbox import SandboxStatus
from tests.commands import Ran, run_here

pytestmark = pytest.mark.kafka


@pytest.fixture
def cluster(connect_sandbox: SandboxStatus) -> Iterator[ConnectCluster]:
    urls = tuple(worker.url for worker in connect_sandbox.workers)
    cluster = RetryingConnectCluster(open_rest_cluster(HttpTarget(urls, str(connect_sandbox.ca_file))))
    yield cluster
    cluster.close()


def test_connector_is_paused_resumed_and_restarted(
    connect_sandbox: SandboxStatus, cluster: ConnectCluster, tmp_path: Path
) -> None:
    name = f"adhoc-{uuid.uuid4().hex[:8]}"
    endpoint = {
        "urls": [worker.url for worker in connect_sandbox.workers],
        "tls": {"caFile": str(connect_sandbox.ca_file)},
    }
    environment = {"bootstrapServers": connect_sandbox.bootstrap, "connect": {"eu": endpoint}}
    project = {
        "apiVersion": "kdeclare/v1",
        "kind": "Project",
        "metadata": {"name": "shop"},
        "spec": {"environments": {"lab": environment}},
    }
    (tmp_path / "kdeclare.yaml").write_text(json.dumps(project))

    def run(*arguments: str) -> Ran:
        return run_here(tmp_path, "connector", *arguments)

    def read_states() -> tuple[str, list[str]]:
        document = json.loads(run("describe", name, "--format", "json").out)
        return document["state"], [task["state"] for task in document["tasks"]]

    config = {"connector.class": "FileStreamSource", "topic": name, "file": str(tmp_path / "in.txt")}
    cluster.create_connector(name, config)
    try:
        resumed = run("resume", name, "--yes")
        assert resumed.code == ExitCode.OK, resumed
        paused = run("pause", name, "--yes")
        assert paused.code == ExitCode.OK, paused
        assert read_states() == ("PAUSED", ["PAUSED"])
        assert run("restart", name, "--yes").code == ExitCode.ERROR
        rolled_back = run_here(tmp_path, "rollback", "--yes")
        assert rolled_back.code == ExitCode.OK, rolled_back
        assert read_states() == ("RUNNING", ["RUNNING"])
        restarted = run("restart", name, "--yes")
        assert restarted.code == ExitCode.OK, restarted
        assert read_states() == ("RUNNING", ["RUNNING"])
        stopped = run("stop", name, "--yes")
        assert stopped.code == ExitCode.OK, stopped
        assert read_states() == ("STOPPED", [])
    finally:
        cluster.delete_connector(name)
