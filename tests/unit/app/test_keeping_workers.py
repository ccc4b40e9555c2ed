"""Connect workers in a shell: each command reads their files as they are."""

from pathlib import Path

import pytest

from kdeclare.app.connections import ConnectionCache, ProjectReferences
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client import port
from kdeclare.providers.connect.client.rest import PATH
from kdeclare.providers.connect.connection import ConnectClients, ConnectTarget
from kdeclare.providers.connect.worker_state import WorkerGroup
from tests.unit.connect.https_stub import create_key_pair, run_https_stub


def open_clients(folder: Path, kept: ConnectionCache) -> ConnectClients:
    """Return the connection that a command in a shell receives."""
    connection = kept.open(ConnectTarget(folder, ProjectReferences(folder, {})), 5.0)
    assert isinstance(connection, ConnectClients)
    return connection


def test_cache_rereads_replaced_worker_files_for_next_command(tmp_path: Path) -> None:
    kept = ConnectionCache()
    good, key = create_key_pair(tmp_path, "worker")
    other, _ = create_key_pair(tmp_path, "other")
    ca, token = tmp_path / "ca.pem", tmp_path / "token"
    ca.write_bytes(other.read_bytes())
    token.write_text("old")
    with run_https_stub(good, key) as stub:
        stub.answers["GET", PATH] = 200, {}
        group = WorkerGroup((stub.url,), ca_file="ca.pem", headers=(("Authorization", "${file.token}"),))
        with pytest.raises(Fault) as refused:
            open_clients(tmp_path, kept).open(group).overrides(stub.url)
        assert refused.value.error == port.NOT_TRUSTED
        ca.write_bytes(good.read_bytes())
        token.write_text("new")
        assert open_clients(tmp_path, kept).open(group).overrides(stub.url) == {}
        assert [asked.headers["Authorization"] for asked in stub.asked] == ["new"]


def test_clients_read_worker_files_once_per_command(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    group = WorkerGroup(("https://w1",), headers=(("Authorization", "${file.token}"),))
    clients = open_clients(tmp_path, ConnectionCache())
    workers = clients.open(group)
    token.unlink()
    assert clients.open(group) is workers
