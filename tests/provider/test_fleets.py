"""Audits of fleets find what has drifted in a system that kdeclare has never heard of."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from kdeclare_flags.provider import FLAG, PROVIDER
from kdeclare_flags.service import FlagService

from kdeclare.app.fleet.audit_policies import evaluate_objects
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.objects import ObjectBody, ObjectRecord, ObjectWrite
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.fleet.cluster_pass import (
    ClusterEvaluation,
    ClusterTables,
    KnownResources,
    LabelsByResource,
    find_in_cluster,
)
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import (
    Row,
    batch_rows,
    build_declared_cluster_row,
    build_declared_rows,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to

TOKEN = "web-secret-1234567"


def create_service(folder: Path) -> FlagService:
    """With a flag, a client of it, and a flag that nobody declares."""
    made = FlagService(folder / "flags.db")
    made.create()
    client = {"flags": ["dark-mode"], "token": TOKEN}
    writes = [
        ObjectWrite(ResourceId("Flag", "dark-mode"), {"rollout": 10}, is_new=True),
        ObjectWrite(ResourceId("Flag", "stray"), {"rollout": 5}, is_new=True),
        ObjectWrite(ResourceId("FlagClient", "web"), client, is_new=True),
    ]
    assert made.write(writes, validate_only=False) == [None, None, None]
    return made


def take_snapshot(flags: FlagService) -> list[Row]:
    connections = connections_to(MemoryCluster(cluster_id="id-1")).with_part(flags)
    batches = batch_rows(read_live_rows(connections, "eu-1", {}, datetime(2026, 3, 1, tzinfo=UTC)))
    return [dict(row) for row in pa.Table.from_batches(batches, LIVE).to_pylist(maps_as_pydicts="strict")]


def declare_flag(name: str, rollout: int) -> DesiredResource:
    return DesiredResource(ResourceId("Flag", name), ObjectBody({"rollout": rollout}))


def test_audit_finds_drifted_missing_and_unmanaged_objects(tmp_path: Path) -> None:
    live = take_snapshot(create_service(tmp_path))
    token = Secret(TOKEN, "${env.WEB_TOKEN}", "a-hash")
    client = DesiredResource(
        ResourceId("FlagClient", "web"), ObjectBody({"flags": ["dark-mode"], "token": token})
    )
    declared = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
    applied = {"dark-mode": ObjectRecord({"rollout": 50}), "gone": ObjectRecord({"rollout": 1})}
    for item in (declare_flag("dark-mode", 50), declare_flag("gone", 1), client):
        declared += build_declared_rows("eu-1", item, item.id, applied.get(item.id.name, ObjectRecord({})))
    found = {(row["kind"], row["name"], row["finding"]) for row in audit_rows(declared, live)}
    assert {finding for finding in found if finding[0] in ("Flag", "FlagClient")} == {
        ("Flag", "dark-mode", "changed"),
        ("Flag", "gone", "missing"),
        ("Flag", "stray", "unmanaged"),
    }


def test_audit_reports_no_drift_of_ignored_fields(tmp_path: Path) -> None:
    live = take_snapshot(create_service(tmp_path))
    body, problems = FLAG.parse(
        "dark-mode",
        FLAG.spec.model_validate({"rollout": 50, "lifecycle": {"ignoreChanges": ["rollout"]}}),
    )
    assert not problems
    ignoring = DesiredResource(ResourceId("Flag", "dark-mode"), body)
    record = ObjectRecord({"rollout": 50})

    def list_findings(item: DesiredResource) -> list[str]:
        declared = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
        declared += build_declared_rows("eu-1", item, item.id, record)
        return [row["finding"] for row in audit_rows(declared, live) if row["name"] == "dark-mode"]

    assert list_findings(declare_flag("dark-mode", 50)) == ["changed"]
    assert list_findings(ignoring) == []


def test_snapshot_contains_no_secrets(tmp_path: Path) -> None:
    assert TOKEN not in json.dumps(take_snapshot(create_service(tmp_path)), default=str)


def test_snapshot_codec_round_trips_objects(tmp_path: Path) -> None:
    flags = create_service(tmp_path)
    connections = connections_to(MemoryCluster()).with_part(flags)
    (collector,) = PROVIDER.collectors
    assert collector.codec is not None
    objects = [(o.key, json.dumps(o.body)) for o in collector.codec.list_objects(connections).objects]
    again = LiveState(collector.codec.decode("null", objects))
    assert FLAG.read(again) == FLAG.read(LiveState(flags.read()))


def test_policies_are_evaluated_for_snapshot_objects(tmp_path: Path) -> None:
    kind = PolicyKind()
    spec = kind.spec.model_validate(
        {"rule": "after.rollout <= 5", "actions": ["CREATE", "MODIFY"], "selector": {"kind": "Flag"}}
    )
    body, problems = kind.parse("small", spec)
    assert not problems
    policy = kind.configured(DesiredResource(ResourceId("Policy", "small"), body))

    def judge(
        live: LiveState, objects: Sequence[ResourceId], labels: LabelsByResource, known: KnownResources
    ) -> ClusterEvaluation:
        return evaluate_objects([policy], live, objects, labels, known)

    (itself, *live) = take_snapshot(create_service(tmp_path))
    found = find_in_cluster(ClusterTables("eu-1", None, itself["body"], [], live), judge)
    assert [(str(id_), item.path) for id_, _, item in found.found] == [("Flag/dark-mode", "policies.small")]
    assert found.notices == ()
