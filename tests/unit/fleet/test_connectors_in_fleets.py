"""Connectors in snapshots and audits of fleets: configs, states and failed tasks, and never a secret."""

import json
from datetime import UTC, datetime
from typing import Any

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import (
    Row,
    build_declared_cluster_row,
    build_declared_rows,
    read_live_rows,
)
from kdeclare.providers.connect.client.connectors_port import TargetState
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.diff import diff_connector
from kdeclare.providers.connect.connector.fleet import ConnectorCodec
from kdeclare.providers.connect.connector.live import ConnectorState
from kdeclare.providers.connect.connector.record import build_record
from kdeclare.providers.connect.connector.spec import ConnectorBody
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing.world import declare, seal_desired
from tests.connections import connections_to

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PASSWORD = "hunter2-hunter2"


def make_sink(name: str, endpoint: str | None = "eu", **more: Any) -> DesiredResource:
    config = {"topics": "a", "file": "f", "db.password": Referenced(PASSWORD, "${env.DB}")}
    spec = {"class": "FileStreamSink", "config": config, "state": "RUNNING", **more}
    if endpoint is not None:
        spec["connect"] = endpoint
    (sealed,) = seal_desired([declare("Connector", name, spec)], None)
    return sealed


def make_record(item: DesiredResource) -> OwnedRecord:
    return build_record(item.get_body(ConnectorBody), "eu", {})


def create(connect: MemoryConnectCluster, name: str, **more: str) -> None:
    config = {"connector.class": "FileStreamSink", "topics": "a", "file": "f", "db.password": PASSWORD}
    connect.create_connector(name, {**config, **more})


def read_rows(connect: MemoryConnectCluster) -> list[Row]:
    connections = connections_to(MemoryCluster(cluster_id="id-1"), None, {"eu": connect})
    return list(read_live_rows(connections, "eu-1", {}, NOW))


def build_rows(
    desired: list[DesiredResource], owned: dict[str, OwnedRecord], orphans: list[DesiredResource]
) -> list[Row]:
    rows = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
    for item in desired:
        rows += build_declared_rows("eu-1", item, item.id, owned.get(str(item.id)))
    for item in orphans:
        rows += build_declared_rows("eu-1", None, item.id, owned[str(item.id)])
    return rows


def find(declared: list[Row], live: list[Row]) -> set[tuple[str, str, str | None]]:
    return {
        (row["name"], row["finding"], row["path"])
        for row in audit_rows(declared, live, unmanaged_keys=True)
        if row["kind"] == "Connector"
    }


def test_audit_finds_drift_of_connectors() -> None:
    connect = MemoryConnectCluster(lag=0)
    names = ("good", "edited", "paused", "failed", "gone", "new", "old")
    sinks = {name: make_sink(name, restartFailed=True) for name in names}
    owned = {str(item.id): make_record(item) for name, item in sinks.items() if name != "new"}
    for name in ("good", "paused", "failed", "old", "unknown"):
        create(connect, name)
    create(connect, "edited", file="other", extra="1")
    connect.set_state("paused", TargetState.PAUSED)
    connect.fail_task("failed", 0, "disk full")
    live = read_rows(connect)
    desired = [sinks[name] for name in names if name != "old"]
    declared = build_rows(desired, owned, [sinks["old"]])
    assert find(declared, live) == {
        ("edited", "changed", "config.file"),
        ("edited", "changed", "config.extra"),
        ("paused", "changed", "state"),
        ("failed", "changed", "tasks"),
        ("gone", "missing", None),
        ("new", "pending", None),
        ("old", "orphaned", None),
        ("eu/unknown", "unmanaged", None),
    }
    assert "hunter2" not in json.dumps([declared, live], default=str)


def decode(connect: MemoryConnectCluster, *endpoints: str) -> ConnectorState:
    """Return the live state that an audit reads from a snapshot of these Connect clusters."""
    clusters = dict.fromkeys(endpoints, connect)
    listing = ConnectorCodec().list_objects(connections_to(MemoryCluster(), None, clusters))
    objects = [(item.key, json.dumps(item.body)) for item in listing.objects]
    return ConnectorCodec().decode(json.dumps(listing.system), objects)


def test_connector_without_declared_cluster_is_compared_with_the_only_one() -> None:
    connect = MemoryConnectCluster(lag=0)
    create(connect, "edited", file="other")
    item = make_sink("edited", None)
    record = build_record(item.get_body(ConnectorBody), "eu", {})
    difference = diff_connector(item.id, item, decode(connect, "eu"), record)
    assert difference.change is not None
    assert [field.path for field in difference.change.fields] == ["config.file"]
    ambiguous = diff_connector(item.id, item, decode(connect, "eu", "us"), record)
    assert [d.code for d in ambiguous.diagnostics] == ["endpoint-not-configured"]


def test_unreachable_cluster_is_named() -> None:
    connect = MemoryConnectCluster(lag=0)
    connect.faults.fail(Fault(UNREACHABLE, "connection refused"), nth=None, method="list_connectors")
    item = make_sink("a")
    declared = build_rows([item], {str(item.id): make_record(item)}, [])
    (row,) = (
        row
        for row in audit_rows(declared, read_rows(connect), unmanaged_keys=True)
        if row["kind"] == "Connector"
    )
    assert "connect/eu did not respond: connection refused" in row["message"]


def test_cluster_with_unusable_settings_is_an_unread_part() -> None:
    connect = MemoryConnectCluster(lag=0)
    create(connect, "a")
    connections = connections_to(MemoryCluster(cluster_id="id-1"), None, {"eu": connect})
    clients = connections.get(ConnectClients)

    def fail() -> MemoryConnectCluster:
        raise KdeclareError(error("bad-file", "Unusable file", "The file 'ca.pem' cannot be used."))

    broken = ConnectClients(clients.open, {**clients.clusters, "us": fail})
    rows = list(read_live_rows(connections.with_part(broken), "eu-1", {}, NOW))
    assert [row["name"] for row in rows if row["kind"] == "Connector"] == ["eu/a", "us/"]
    assert "ca.pem" in rows[-1]["error"]
