"""One broker and two Connect workers for all tests of connectors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.conftest import free_port
from tests.kafka.connectors.connector_project import ConnectorProject


@pytest.fixture(scope="package")
def worker_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxSettings]:
    """Settings of a sandbox that starts on first use and is deleted at the end."""
    folder = tmp_path_factory.mktemp("connectors") / "sandbox"
    yield SandboxSettings(folder, 1, 1, free_port(1, workers=2), connect_workers=2)
    kafka_sandbox.reset(folder)


@pytest.fixture
def two_workers(worker_settings: SandboxSettings) -> SandboxStatus:
    """The running sandbox; workers that an earlier test killed are started again."""
    now = kafka_sandbox.status(worker_settings.folder)
    return now if now.ready else kafka_sandbox.start(worker_settings, print)


@pytest.fixture
def cluster(two_workers: SandboxStatus) -> Iterator[ConnectCluster]:
    """A client of the workers. Workers that expect a rebalance reject even reads, so it repeats them."""
    urls = tuple(worker.url for worker in two_workers.workers)
    cluster = RetryingConnectCluster(open_rest_cluster(HttpTarget(urls, str(two_workers.ca_file))))
    yield cluster
    cluster.close()


@pytest.fixture
def project(tmp_path: Path, two_workers: SandboxStatus) -> Iterator[ConnectorProject]:
    """A project without manifests. Everything that it declared is deleted after the test."""
    project = ConnectorProject(tmp_path / "project", two_workers)
    yield project
    project.delete_all()
