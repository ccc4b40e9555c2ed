"""Two secure clusters with a Connect worker each: certificates, users and the rights of connectors."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdeclare import sandbox
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client import connect, read_properties
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST, NewTopic
from kdeclare.sandbox import GroupSettings, SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER, WORKER
from tests.beds import all_created
from tests.commands import Ran, run_here
from tests.conftest import connect_as, free_ports_of_clusters
from tests.kafka.test_sandbox_connect import send_request
from tests.polling import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroupSettings]:
    """Settings of two clusters, which `start` starts; deleted at the end."""
    port = free_ports_of_clusters(2, workers=1, secure=True)
    settings = GroupSettings(
        tmp_path_factory.mktemp("secure") / "sandbox", 2, 1, 1, port, connect_workers=1, secure=True
    )
    yield settings
    sandbox.reset_group(settings)


@pytest.fixture(scope="module")
def printed(settings: GroupSettings) -> str:
    """The output of the command that starts the clusters."""
    options = ("--clusters", "2", "--brokers", "1", "--connect-workers", "1", "--secure")
    command = [sys.executable, "-m", "kdeclare", "sandbox", "start", *options, "--port", str(settings.port)]
    done = subprocess.run(
        [*command, "--folder", str(settings.folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def clusters(printed: str, settings: GroupSettings) -> tuple[SandboxStatus, ...]:
    """The running clusters."""
    assert printed
    now = sandbox.group_status(settings)
    assert now.ready
    return now.clusters


def run_as_admin(cluster: SandboxStatus, folder: Path, *arguments: str) -> Ran:
    """Run a command as the administrator of a cluster."""
    file = resolve_layout(cluster.folder).security.client(ADMIN)
    return run_here(folder, *arguments, "--command-config", str(file))


def test_each_cluster_has_own_workers_users_and_certificates(
    printed: str, clusters: tuple[SandboxStatus, ...]
) -> None:
    lines = [
        line
        for one in clusters
        for line in (one.bootstrap, one.workers[0].url, str(one.ca_file), *map(str, one.client_files))
    ]
    assert printed.splitlines() == lines
    for one in clusters:
        assert send_request(one, 1, "/")["kafka_cluster_id"] == one.cluster_id
        for user in (ADMIN, READER, WORKER):
            with closing(connect_as(one, user)) as client:
                assert client.describe().principal == f"User:{user}"
    first, second = clusters
    files = resolve_layout(first.folder).security
    properties = {**read_properties(files.client(ADMIN)), "bootstrap.servers": second.bootstrap}
    with pytest.raises(KdeclareError, match="certificate of the server is not trusted"):
        connect("", properties, timeout_s=10)


def test_connector_writes_only_to_granted_topics(clusters: tuple[SandboxStatus, ...], tmp_path: Path) -> None:
    cluster = clusters[1]
    (tmp_path / "lines").write_text("one\ntwo\n")
    with closing(connect_as(cluster, ADMIN)) as admin:
        assert all_created(admin.create_topics([NewTopic("lines", 1, 1, None, {})]))
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(tmp_path / "lines"),
            "topic": "lines",
        }
        send_request(cluster, 1, "/connectors/lines/config", "PUT", config)
        wait_for(lambda: read_task_state(cluster) == "FAILED", 30, every=0.1)
        assert "TopicAuthorizationException" in read_task_trace(cluster)
        where = TopicPartition("lines", 0)
        assert admin.list_offsets(["lines"], (EARLIEST, LATEST))[where] == (0, 0)
        right = ("--principal", f"User:{WORKER}", "--operation", "Write", "--topic", "lines")
        assert run_as_admin(cluster, tmp_path, "acl", "explain", *right).code == 3
        (tmp_path / "rights.yaml").write_text(
            "apiVersion: kdeclare/v1\nkind: Acl\nmetadata: {name: connectors}\n"
            f"spec: {{principal: 'User:{WORKER}', produce: [lines]}}\n"
        )
        ran = run_as_admin(cluster, tmp_path, "apply", "rights.yaml", "--yes")
        assert ran.code == 0, ran
        assert run_as_admin(cluster, tmp_path, "acl", "explain", *right).code == 0
        send_request(cluster, 1, "/connectors/lines/restart?includeTasks=true&onlyFailed=true", "POST")
        wait_for(lambda: admin.list_offsets(["lines"], (LATEST,))[where] == (2,), 30, every=0.1)
        assert read_task_state(cluster) == "RUNNING"


def read_task_state(cluster: SandboxStatus) -> str:
    """Return the state of the only task; empty if there is none yet."""
    return "".join(task["state"] for task in read_tasks(cluster))


def read_task_trace(cluster: SandboxStatus) -> str:
    """Return the reason why the only task failed."""
    return "".join(task["trace"] for task in read_tasks(cluster))


def read_tasks(cluster: SandboxStatus) -> Any:
    """Return the tasks of the connector; none while the worker has not started the connector."""
    connectors = send_request(cluster, 1, "/connectors?expand=status")
    return connectors["lines"]["status"]["tasks"] if "lines" in connectors else []


def test_second_start_changes_nothing_and_stop_keeps_users(
    settings: GroupSettings, clusters: tuple[SandboxStatus, ...]
) -> None:
    pids = [broker.pid for one in clusters for broker in one.brokers]
    again = sandbox.start_group(settings, print)
    assert [broker.pid for broker in again.brokers] == pids
    with pytest.raises(KdeclareError) as refused:
        sandbox.start_group(replace(settings, secure=False), print)
    assert refused.value.diagnostics[0].code == "sandbox-differs"
    sandbox.stop(clusters[0].folder)
    back = sandbox.start_group(settings, print)
    assert back.ready
    with closing(connect_as(back.clusters[0], READER)) as client:
        assert client.describe().id == clusters[0].cluster_id
