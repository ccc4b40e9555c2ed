"""SCRAM users in snapshots and audits of fleets: iterations, and never anything secret."""

import json
from datetime import UTC, datetime

from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import (
    Row,
    build_declared_cluster_row,
    build_declared_rows,
    read_live_rows,
)
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.collector import ScramState
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.providers.kafka.scram_user.diff import diff_scram_user
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing.world import declare, seal_desired
from tests.connections import connections_to

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SHA_256, SHA_512 = Mechanism.SHA_256, Mechanism.SHA_512


def make_user(name: str) -> DesiredResource:
    mechanisms = {SHA_512.value: {"password": "hunter2-hunter2"}}
    (sealed,) = seal_desired([declare("ScramUser", name, {"mechanisms": mechanisms})], None)
    return sealed


def make_record(item: DesiredResource) -> OwnedRecord:
    record = diff_scram_user(item.id, item, ScramState(), None).owned
    assert record is not None
    return record


def set_credential(cluster: MemoryCluster, user: str, mechanism: Mechanism, iterations: int) -> None:
    item = ScramAlteration(user, mechanism, ScramUpsertion(iterations, "hunter2-hunter2"))
    assert cluster.alter_scram_users([item]) == {user: None}


def build_rows(
    desired: list[DesiredResource], owned: dict[str, OwnedRecord], orphans: list[DesiredResource]
) -> list[Row]:
    rows = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
    for item in desired:
        rows += build_declared_rows("eu-1", item, item.id, owned.get(str(item.id)))
    for item in orphans:
        rows += build_declared_rows("eu-1", None, item.id, owned[str(item.id)])
    return rows


def test_audit_finds_drift_of_credentials() -> None:
    cluster = MemoryCluster(cluster_id="id-1")
    good, drifted, gone, new, old = map(make_user, ("good", "drifted", "gone", "new", "old"))
    owned = {str(item.id): make_record(item) for item in (good, drifted, gone, old)}
    for item in (good, old):
        record = owned[str(item.id)]
        set_credential(cluster, item.id.name, SHA_512, record.mechanisms["SCRAM-SHA-512"].iterations)  # type: ignore[attr-defined]
    set_credential(cluster, "drifted", SHA_512, 4096)
    set_credential(cluster, "good", SHA_256, 4096)
    set_credential(cluster, "unknown", SHA_256, 4096)
    live = list(read_live_rows(connections_to(cluster), "eu-1", {}, NOW))
    declared = build_rows([good, drifted, gone, new], owned, [old])
    found = {
        (row["name"], row["finding"], row["path"])
        for row in audit_rows(declared, live, unmanaged_keys=True)
        if row["kind"] == "ScramUser"
    }
    path = "mechanisms.SCRAM-SHA-512"
    assert found == {
        ("drifted", "changed", path),
        ("gone", "missing", None),
        ("new", "pending", None),
        ("old", "orphaned", None),
        ("good", "unmanaged", "mechanisms.SCRAM-SHA-256"),
        ("unknown", "unmanaged", None),
    }
    assert "hunter2" not in json.dumps([declared, live], default=str)
