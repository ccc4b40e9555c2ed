"""Both engines of fleets write the same findings and reports, and read each other's tables."""

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdeclare.cli.main import main
from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.fleet.live_state import UNUSED, hash_text
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.spark.tasks import read_clusters
from kdeclare.fleet.tables.rows import CLUSTER, FINDINGS, SUMMARY
from kdeclare.fleet.tables.storage import LocalStorage
from tests.http_servers import serve
from tests.spark.quota_fleet import make_quota_fleet
from tests.spark.real_fleet import RealFleet, accept_drift, make_real_fleet
from tests.thoroughness import mark_rest
from tests.unit.fleet.test_snapshot_diff import Fleet as SnapshotFleet

pytestmark = pytest.mark.spark

ENGINES = ("local", "spark", "auto")
_RUN_FIELDS = ("audit_id", "taken_at", "seconds", "since", "trend")
"""The fields of a summary that depend on the run."""


def audit(fleet: RealFleet, out: Path, engine: str) -> dict[str, Any]:
    line = ["fleet", "audit", str(fleet.file), "--out", str(out), "--engine", engine]
    assert main([*line, "--snapshot", str(fleet.snapshots)]) == 0
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def drop_run(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name not in _RUN_FIELDS}


def read_findings(out: Path, audit_id: str) -> bytes:
    """Return the findings of an audit as bytes, in a fixed order."""
    rows = read_rows(LocalStorage(out), f"findings/audit_id={audit_id}", FINDINGS)
    rows = [row | {"labels": sorted((row["labels"] or {}).items())} for row in rows]
    table = pa.Table.from_pylist(sorted(rows, key=repr), FINDINGS)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, FINDINGS) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_engines_write_same_findings_and_continue_each_other(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    outs = {engine: tmp_path / engine for engine in ("local", "spark")}
    first = {engine: audit(fleet, out, engine) for engine, out in outs.items()}
    assert sum(first["local"]["found"].values()) > 0
    assert drop_run(first["local"]) == drop_run(first["spark"])
    local, spark = (read_findings(out, first[engine]["audit_id"]) for engine, out in outs.items())
    assert local == spark
    for engine, out in zip(("spark", "local"), outs.values(), strict=True):  # the other engine continues
        again = audit(fleet, out, engine)
        assert again["since"]["new"] == again["since"]["mended"] == 0
        assert again["since"]["known"] == sum(first["local"]["found"].values())


def test_engines_write_same_physical_types(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would write times as INT96, without a time zone."""
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    for engine in ("local", "spark"):
        audit(fleet, tmp_path / engine, engine)
    for table, schema in (("findings", FINDINGS), ("unseen", FINDINGS), ("summary", SUMMARY)):
        local, spark = (describe_columns(tmp_path / engine / table) for engine in ("local", "spark"))
        assert local == spark
        assert set(local) >= set(schema.names) - {"labels"}
        times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
        assert {local[name] for name in times} == {
            (
                "INT64",
                "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, "
                "force_set_converted_type=false)",
            )
        }
        for engine in ("local", "spark"):
            files = list((tmp_path / engine / table).rglob("*.parquet"))
            assert files
            assert {pq.read_schema(file).field("taken_at").type for file in files} == {
                pa.timestamp("us", "UTC")
            }


def describe_columns(table: Path) -> dict[str, tuple[str, str]]:
    """Return the physical and the logical type of each column in the files of a table."""
    columns: dict[str, tuple[str, str]] = {}
    for file in table.rglob("*.parquet"):
        schema = pq.ParquetFile(file).schema
        for number in range(len(schema)):
            column = schema.column(number)
            types = (column.physical_type, str(column.logical_type))
            assert columns.setdefault(column.path, types) == types
    return columns


def test_engines_report_same_stored_findings(
    in_shared_spark: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fleet, out = make_real_fleet(tmp_path / "fleet", monkeypatch), tmp_path / "audits"
    first = audit(fleet, out, "local")
    (fleet.folder / "lab" / "all.yaml").unlink()
    audit(fleet, out, "local")
    documents = []
    for engine in ("local", "spark"):
        capsys.readouterr()
        line = ["fleet", "report", "--out", str(out), "--engine", engine, "--format", "json"]
        assert main([*line, "--since", first["audit_id"], "--where", "severity>=low"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert {finding["cluster"] for finding in documents[0]["fixed"]} == {"lab"}
    assert len(documents[0]["findings"]) > 5


def test_engines_find_same_differences_of_snapshots(
    in_shared_spark: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = SnapshotFleet(tmp_path)
    fleet.take("20261121T040000Z-0001")
    fleet.set_retention("eu-1", "orders", "1000")
    fleet.clusters["eu-1"].delete_topics({"clicks": None})
    fleet.take("20261122T040000Z-0001", us_1="connection refused")
    documents = []
    for engine in ("local", "spark"):
        capsys.readouterr()
        assert fleet.diff("--engine", engine, "--format", "json") == 1
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert [change["name"] for change in documents[0]["changes"]] == ["clicks", "orders"]
    assert [part["cluster"] for part in documents[0]["unknown"]] == ["us-1"]


@pytest.mark.thorough
def test_engines_accept_same_drift(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    before = audit(fleet, tmp_path / "before", "local")
    accept_drift(fleet)
    audits = {engine: audit(fleet, tmp_path / engine, engine) for engine in ("local", "spark")}
    local, spark = audits.values()
    assert drop_run(local) == drop_run(spark)
    both = [read_findings(tmp_path / engine, found["audit_id"]) for engine, found in audits.items()]
    assert both[0] == both[1]
    topics, old, unused = local["accepted"]
    assert (old["expired"], old["count"], unused["count"]) == (True, 0, 0)
    assert topics["count"] > 3
    assert sum(local["found"].values()) + topics["count"] == sum(before["found"].values())
    assert sum(group["count"] for group in local["groups"]) == sum(local["found"].values())


def test_engines_find_same_contested_resources(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch, is_shared=True)
    audits = {engine: audit(fleet, tmp_path / engine, engine) for engine in ("local", "spark")}
    local, spark = audits.values()
    assert drop_run(local) == drop_run(spark)
    assert local["found"]["contested"] == 5
    both = [read_findings(tmp_path / engine, found["audit_id"]) for engine, found in audits.items()]
    assert both[0] == both[1]


def test_engines_find_same_contested_quotas_and_acls(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = make_quota_fleet(tmp_path / "fleet", monkeypatch)
    audits = {engine: audit(fleet, tmp_path / engine, engine) for engine in ("local", "spark")}
    assert audits["local"]["found"].get("unmanaged", 0) == 0
    assert audits["local"]["found"]["contested"] > 0
    both = [read_findings(tmp_path / engine, found["audit_id"]) for engine, found in audits.items()]
    assert both[0] == both[1]


@pytest.mark.parametrize("engine", mark_rest(["local", "spark"], 1))
def test_audit_refuses_incomplete_table_of_earlier_audit(
    engine: str,
    in_shared_spark: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Otherwise, the lost findings would be reported as new."""
    fleet, out = make_real_fleet(tmp_path / "fleet", monkeypatch), tmp_path / "audits"
    first = audit(fleet, out, engine)
    count = sum(first["found"].values())
    assert (first["rows"]["findings"], first["rows"]["unseen"]) == (count, 0)
    (lost, *_) = sorted((out / "findings").rglob("*.parquet"), key=lambda file: -file.stat().st_size)
    copy = lost.read_bytes()
    lost.unlink()
    line = ["fleet", "audit", str(fleet.file), "--out", str(out), "--engine", engine]
    line += ["--snapshot", str(fleet.snapshots)]
    assert main(line) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert f"but {count:,} rows were written. Nothing was changed." in shown
    assert json.loads((out / "summary.json").read_text()) == first
    lost.write_bytes(copy)
    (lost.parent / f"copy-{lost.name}").write_bytes(copy)
    assert main(line) == 1, "a copied file would count findings twice"
    (lost.parent / f"copy-{lost.name}").unlink()
    assert main(line) == 0
    (out / "audits" / f"{first['audit_id']}.json").unlink()
    lost.unlink()
    assert main(line) == 0, "an audit without a record is left out"


def test_auto_engine_writes_same_findings(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit, Spark reads the manifests of the other clusters, and compares."""
    fleet = make_serial_fleet(tmp_path / "fleet", monkeypatch)
    collected = record_collected_clusters(monkeypatch)
    expected = audit(fleet, tmp_path / "spark", "spark")
    assert collected == [3]
    for limit, read_on_spark in ((0, [2]), (10_000, [])):
        collected.clear()
        monkeypatch.setattr("kdeclare.app.fleet.local_audit.MAX_LOCAL_ROWS", limit)
        out = tmp_path / f"auto-{limit}"
        summary = audit(fleet, out, "auto")
        assert collected == read_on_spark
        assert drop_run(summary) == drop_run(expected)
        found = read_findings(tmp_path / "spark", expected["audit_id"])
        assert read_findings(out, summary["audit_id"]) == found


@pytest.mark.parametrize("command", ["audit", "snapshot", "plan"])
@pytest.mark.thorough
def test_auto_engine_reads_remaining_clusters_on_spark(
    command: str, in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cluster of this fleet can be reached, so that each has one row in the live table."""
    fleet = make_serial_fleet(tmp_path / "fleet", monkeypatch)
    collected = record_collected_clusters(monkeypatch)
    line = ["fleet", command, str(fleet.file), "--timeout", "0.1"]
    assert main([*line, "--out", str(tmp_path / "spark"), "--engine", "spark"]) == 1
    assert collected[-1] == 3  # an audit reads the manifests in a job of their own
    expected = list_written(tmp_path / "spark")
    assert "_unfinished" not in expected
    for limit in (0, 1, 10_000):
        collected.clear()
        monkeypatch.setattr("kdeclare.app.fleet.local_audit.MAX_LOCAL_ROWS", limit and limit + 43)
        monkeypatch.setattr("kdeclare.app.fleet.snapshot.MAX_LOCAL_ROWS", limit)
        monkeypatch.setattr(
            "kdeclare.app.fleet.rollout.saved_plans.MAX_LOCAL_PLANNED", limit if limit > 1 else -1
        )
        out = tmp_path / f"auto-{limit}"
        assert main([*line, "--out", str(out), "--engine", "auto"]) == 1
        assert bool(collected) == (limit < 10_000)
        assert list_written(out) == expected


def list_written(out: Path) -> set[str]:
    """Return the files and folders of an output folder that have files."""
    return {path.relative_to(out).parts[0] for path in out.rglob("*") if path.is_file()}


def test_history_is_same_with_both_engines(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet, audits = make_real_fleet(tmp_path / "fleet", monkeypatch), tmp_path / "audits"
    audit(fleet, audits, "local")
    (fleet.folder / "lab" / "all.yaml").unlink()
    audit(fleet, audits, "local")
    for cluster, name in (("eu-1", "t.1"), ("eu-1", "t.2"), ("eu-2", "BrokerConfig/1"), ("lab", "t.3")):
        capsys.readouterr()
        line = ["fleet", "history", cluster, name, "--out", str(fleet.snapshots), "--format", "json"]
        line += ["--audits", str(audits)]
        results = [(main([*line, "--engine", engine]), capsys.readouterr()) for engine in ENGINES]
        assert results[0] == results[1] == results[2]


def make_serial_fleet(folder: Path, monkeypatch: pytest.MonkeyPatch) -> RealFleet:
    """Return a fleet whose clusters are read one after the other."""
    fleet = make_real_fleet(folder, monkeypatch)
    text = fleet.file.read_text()
    fleet.file.write_text(text.replace("spec:\n", "spec:\n  maxConcurrentClusters: 1\n"))
    return fleet


def record_collected_clusters(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that receives how many clusters each Spark job reads."""
    counts: list[int] = []

    def read_recorded(spark: Any, names: Sequence[str], *arguments: Any, **options: Any) -> Any:
        counts.append(len(names))
        return read_clusters(spark, names, *arguments, **options)

    monkeypatch.setattr("kdeclare.fleet.spark.tasks.read_clusters", read_recorded)
    return counts


@pytest.mark.thorough
def test_engines_send_same_messages(
    in_shared_spark: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fleet, out = make_real_fleet(tmp_path / "fleet", monkeypatch), tmp_path / "audits"
    notification = "- {name: platform, url: '${env.HOOK_URL}', format: json}"
    fleet.file.write_text(f"{fleet.file.read_text()}  notifications:\n    {notification}\n")
    first = audit(fleet, out, "spark")
    (fleet.folder / "lab" / "all.yaml").unlink()
    audit(fleet, out, "local")
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

    with serve(Handler, ("POST",)) as url:
        monkeypatch.setenv("HOOK_URL", url)
        for engine in ("local", "spark"):
            line = ["fleet", "notify", str(fleet.file), "--out", str(out), "--engine", engine, "--again"]
            assert main(line) == 0
    assert len(received) == 2
    assert received[0] == received[1]
    message = json.loads(received[0])
    assert message["since"]["audit_id"] == first["audit_id"]
    assert message["new_count"] + message["fixed_count"] > 0


@pytest.mark.thorough
def test_engines_find_same_unused_topics(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second snapshot does not tell of one topic whether it is used, so its finding is unseen."""
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    unused = build_usage(set())
    add_unused_field(fleet, "eu-1", unused)
    add_unused_field(fleet, "lab", unused)
    for engine in ("local", "spark"):
        found = audit(fleet, tmp_path / engine, engine)
        assert found["found"]["unused"] == 4
    first = {
        engine: json.loads((tmp_path / engine / "summary.json").read_text()) for engine in ("local", "spark")
    }
    assert drop_run(first["local"]) == drop_run(first["spark"])
    both = [read_findings(tmp_path / engine, summary["audit_id"]) for engine, summary in first.items()]
    assert both[0] == both[1]
    add_unused_field(fleet, "eu-1", build_usage({"t.1"}))
    second = {engine: audit(fleet, tmp_path / engine, engine) for engine in ("local", "spark")}
    assert drop_run(second["local"]) == drop_run(second["spark"])
    assert second["local"]["unseen"] == {"unused": 1}
    assert second["local"]["since"]["mended"] == second["spark"]["since"]["mended"] == 0
    both = [read_findings(tmp_path / engine, summary["audit_id"]) for engine, summary in second.items()]
    assert both[0] == both[1]


def build_usage(undetermined: set[str]) -> dict[str, Any]:
    """Return the usage of two topics, as a snapshot contains it."""
    figures = {"records": 5, "bytes": 700, "newest_record_ms": 1_700_000_000_000, "groups": 1}
    return {
        "objects": [
            {
                "kind": "Topic",
                "name": name,
                "message": "No group has members that read the topic.",
                "figures": figures,
            }
            for name in ("t.1", "t.3")
            if name not in undetermined
        ],
        "undetermined": [
            {"kind": "Topic", "reason": "groups may be hidden", "count": 1, "names": [name]}
            for name in sorted(undetermined)
        ],
        "warnings": ["Unused topics may be in use."],
    }


def add_unused_field(fleet: RealFleet, cluster: str, value: dict[str, Any]) -> None:
    """Add the usage of topics to a cluster's own row in the snapshot."""
    (file,) = fleet.list_files(cluster)
    table = pq.read_table(file)
    rows = table.to_pylist()
    for row in rows:
        if row["kind"] == CLUSTER:
            row["body"] = dump_canonical_json(json.loads(row["body"]) | {UNUSED: value})
            row["fingerprint"] = hash_text(row["body"])
    pq.write_table(pa.Table.from_pylist(rows, table.schema), file)
