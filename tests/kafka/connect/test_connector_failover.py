"""Connectors on two real workers, one of which is killed: reads go on, and changes succeed with retries."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client.connectors_port import ConnectCluster, TargetState
from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.conftest import free_port
from tests.polling import retry_until_passes
from tests.thoroughness import mark_rest

pytestmark = pytest.mark.kafka

CONFIG = {"connector.class": "FileStreamSink", "topics": "orders", "file": "/dev/null"}


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[SandboxStatus]:
    settings = SandboxSettings(tmp_path / "sandbox", 1, 1, free_port(1, workers=2), connect_workers=2)
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


def expect_state(cluster: ConnectCluster, name: str, state: str) -> None:
    def check() -> None:
        connector = cluster.describe_connector(name)
        assert connector is not None
        assert connector.state == state, connector

    retry_until_passes(check, 60, errors=(AssertionError,))


@pytest.mark.parametrize("killed", mark_rest([0, 1], 1))
def test_killed_worker_loses_no_connector(two_workers: SandboxStatus, killed: int) -> None:
    urls = tuple(worker.url for worker in two_workers.workers)
    cluster = RetryingConnectCluster(open_rest_cluster(HttpTarget(urls, str(two_workers.ca_file))))
    cluster.create_connector("a", CONFIG)
    expect_state(cluster, "a", "RUNNING")
    kafka_sandbox.kill_worker(two_workers.folder, two_workers.workers[killed].id)
    assert cluster.list_connectors().keys() == {"a"}
    # Until the workers notice that their leader is gone, they cannot forward changes to it.
    cluster.set_state("a", TargetState.STOPPED)
    cluster.create_connector("b", CONFIG, TargetState.STOPPED)
    for name in ("a", "b"):
        expect_state(cluster, name, "STOPPED")
    cluster.close()
