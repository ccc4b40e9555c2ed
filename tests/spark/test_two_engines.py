"""Both engines of fleets write the same findings and reports, and read each other's tables."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kdeclare.cli.main import main
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.rows import FINDINGS
from kdeclare.fleet.storage import LocalStorage
from tests.spark.real_fleet import RealFleet, make_real_fleet

pytestmark = pytest.mark.spark

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
