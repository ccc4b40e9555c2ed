"""Both engines of fleets write the same findings and reports, and read each other's tables."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kdeclare.cli.main import main
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.rows import FINDINGS
from kdeclare.fleet.spark.tasks import read_clusters
from kdeclare.fleet.storage import LocalStorage
from tests.spark.real_fleet import RealFleet, make_real_fleet

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


@pytest.mark.parametrize("limit", [0, 10_000])
def test_auto_engine_writes_same_findings(
    limit: int, in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit, Spark reads the manifests of the other clusters, and compares."""
    fleet = make_serial_fleet(tmp_path / "fleet", monkeypatch)
    monkeypatch.setattr("kdeclare.app.fleet.local_audit.MAX_LOCAL_ROWS", limit)
    collected = record_collected_clusters(monkeypatch)
    summaries = [audit(fleet, tmp_path / engine, engine) for engine in ("auto", "spark")]
    assert collected == ([2] if limit == 0 else []) + [3]
    assert drop_run(summaries[0]) == drop_run(summaries[1])
    auto, spark = (
        read_findings(tmp_path / engine, summary["audit_id"])
        for engine, summary in zip(("auto", "spark"), summaries, strict=True)
    )
    assert auto == spark


@pytest.mark.parametrize("command", ["audit", "snapshot", "plan"])
@pytest.mark.parametrize("limit", [0, 1, 10_000])
def test_auto_engine_reads_remaining_clusters_on_spark(
    command: str, limit: int, in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cluster of this fleet can be reached, so that each has one row in the live table."""
    fleet = make_serial_fleet(tmp_path / "fleet", monkeypatch)
    monkeypatch.setattr("kdeclare.app.fleet.local_audit.MAX_LOCAL_ROWS", limit and limit + 43)
    monkeypatch.setattr("kdeclare.app.fleet.snapshot.MAX_LOCAL_ROWS", limit)
    monkeypatch.setattr("kdeclare.app.fleet.saved_plans.MAX_LOCAL_PLANNED", limit if limit > 1 else -1)
    collected = record_collected_clusters(monkeypatch)
    line = ["fleet", command, str(fleet.file), "--timeout", "0.1"]
    outs = [tmp_path / engine for engine in ("auto", "spark")]
    assert main([*line, "--out", str(outs[0]), "--engine", "auto"]) == 1
    assert bool(collected) == (limit < 10_000)
    assert main([*line, "--out", str(outs[1]), "--engine", "spark"]) == 1
    assert collected[-1] == 3
    auto, spark = (
        {path.relative_to(out).parts[0] for path in out.rglob("*") if path.is_file()} for out in outs
    )
    assert auto == spark
    assert "_unfinished" not in auto


def test_history_is_same_with_both_engines(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    for cluster, name in (("eu-1", "t.1"), ("eu-1", "t.2"), ("eu-2", "BrokerConfig/1"), ("lab", "t.3")):
        capsys.readouterr()
        line = ["fleet", "history", cluster, name, "--out", str(fleet.snapshots), "--format", "json"]
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
