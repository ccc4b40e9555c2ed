"""Connect workers behind a kept connection: each command reads their files as they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from kdeclare.app.connect.door import ProjectDoor
from kdeclare.app.keeping import KeptConnections
from kdeclare.core.faults import Fault
from kdeclare.providers.connect.client import port
from kdeclare.providers.connect.client.port import Door
from kdeclare.providers.connect.client.rest import PATH
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka.client.adapter import KafkaCluster
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import Cluster
from tests.unit.connect.https_stub import https, pair


class Answering(KafkaCluster):
    """As a cluster that is still there."""

    def describe(self) -> ClusterInfo:
        return cast(ClusterInfo, None)


def connect(servers: str, config: Mapping[str, str], timeout_s: float, door: Door) -> Cluster:
    return Answering(cast(Wire, None), door=door)


def test_a_replaced_file_is_read_by_the_next_command_in_a_shell(tmp_path: Path) -> None:
    kept = KeptConnections(connect)

    def command() -> Cluster:
        return kept("a:1", {}, 5.0, ProjectDoor(tmp_path, {}, 5.0))

    good, key = pair(tmp_path, "worker")
    other, _ = pair(tmp_path, "other")
    ca, token = tmp_path / "ca.pem", tmp_path / "token"
    ca.write_bytes(other.read_bytes())
    token.write_text("old")
    with https(good, key) as stub:
        stub.answers["GET", PATH] = 200, {}
        group = WorkerGroup((stub.url,), ca_file="ca.pem", headers=(("Authorization", "${file.token}"),))
        first = command()
        with pytest.raises(Fault) as refused:
            first.workers(group).overrides(stub.url)
        assert refused.value.error == port.NOT_TRUSTED
        ca.write_bytes(good.read_bytes())
        token.write_text("new")
        second = command()
        assert second is first
        assert second.workers(group).overrides(stub.url) == {}
        assert [asked.headers["Authorization"] for asked in stub.asked] == ["new"]


def test_one_command_reads_them_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    group = WorkerGroup(("https://w1",), headers=(("Authorization", "${file.token}"),))
    cluster = connect("a:1", {}, 5.0, ProjectDoor(tmp_path, {}, 5.0))
    workers = cluster.workers(group)
    token.unlink()
    assert cluster.workers(group) is workers
