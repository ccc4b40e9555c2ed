"""Connectors on two real workers, one of which is killed: reads go on, and no change is lost silently."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect.client.connectors_port import ConnectCluster, TargetState
from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.providers.http.target import HttpTarget
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.conftest import free_port

pytestmark = pytest.mark.kafka

CONFIG = {"connector.class": "FileStreamSink", "topics": "orders", "file": "/dev/null"}


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[SandboxStatus]:
    settings = SandboxSettings(tmp_path / "sandbox", 1, 1, free_port(1, workers=2), connect_workers=2)
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


def send_until_accepted(change: Callable[[], object], timeout_s: float = 60.0) -> list[Fault]:
    """Send a change again after every fault, and return the faults."""
    faults: list[Fault] = []
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            change()
        except Fault as fault:
            faults.append(fault)
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return faults


def create_unless_it_exists(cluster: ConnectCluster, name: str) -> None:
    """Create a connector, unless a request whose response was lost has created it."""
    if cluster.describe_connector(name) is None:
        cluster.create_connector(name, CONFIG, TargetState.STOPPED)


def expect_state(cluster: ConnectCluster, name: str, state: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        connector = cluster.describe_connector(name)
        if connector is not None and connector.state == state:
            return
        assert time.monotonic() < deadline, connector
        time.sleep(0.2)


@pytest.mark.parametrize("killed", [0, 1])
def test_killed_worker_loses_no_connector(two_workers: SandboxStatus, killed: int) -> None:
    urls = tuple(worker.url for worker in two_workers.workers)
    cluster = RetryingConnectCluster(open_rest_cluster(HttpTarget(urls, str(two_workers.ca_file))))
    cluster.create_connector("a", CONFIG)
    expect_state(cluster, "a", "RUNNING")
    kafka_sandbox.kill_worker(two_workers.folder, two_workers.workers[killed].id)
    assert cluster.list_connectors().keys() == {"a"}
    faults = send_until_accepted(lambda: cluster.set_state("a", TargetState.STOPPED))
    faults += send_until_accepted(lambda: create_unless_it_exists(cluster, "b"))
    print([str(fault) for fault in faults])  # which faults there are depends on which worker was the leader
    assert {fault.kind for fault in faults} <= {FaultKind.UNKNOWN, FaultKind.RETRIABLE}
    for name in ("a", "b"):
        expect_state(cluster, name, "STOPPED")
    cluster.close()
