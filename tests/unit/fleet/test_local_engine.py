"""Snapshots and audits with ``--engine local``: tables, comparison with earlier audits, and refusals."""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kdeclare.cli.main import main
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.in_process_audit import audit_rows, find_drift_in_rows
from kdeclare.fleet.local.audit import LocalTables, find_all, find_fixed, find_unchecked, require_unaltered
from kdeclare.fleet.local.tables import (
    format_partition,
    open_local_workbench,
    parse_partition,
    read_in_threads,
    read_rows,
)
from kdeclare.fleet.tables.row_builder import batch_rows
from kdeclare.fleet.tables.rows import CLUSTER, FINDINGS, LIVE
from kdeclare.fleet.tables.snapshots import SnapshotCluster
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.fleet.tables.unfinished_tables import publish_tables
from scripts.reference.tables import READ_AUDITS
from tests.spark.real_fleet import SECRETS, accept_drift, make_real_fleet
from tests.unit.fleet.fleets import generate_fleet

MONDAY, TODAY = (datetime(2026, 11, day, tzinfo=UTC) for day in (16, 18))


def build_findings(*short: tuple[str, str, str, str | None], seen: datetime = MONDAY) -> list[dict[str, Any]]:
    known = [dict(zip(("cluster", "name", "finding", "path"), item, strict=True)) for item in short]
    times = {"kind": "Topic", "taken_at": seen, "first_seen": seen, "status": "new"}
    return [dict.fromkeys(FINDINGS.names) | row | times for row in known]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("unmanaged_keys", [True, False])
def test_skipping_proven_resources_does_not_change_findings(seed: int, unmanaged_keys: bool) -> None:
    fleet = generate_fleet(Random(seed), clusters=8, topics=60, plain=seed % 2 == 0)
    every, proven = (
        find_drift_in_rows(fleet.declared, fleet.live, unmanaged_keys=unmanaged_keys, skip_proven=skip)
        for skip in (False, True)
    )
    assert proven == every
    assert len(list(audit_rows(fleet.declared, fleet.live, unmanaged_keys=unmanaged_keys))) == len(every) > 20


def test_tables_are_read_as_written(tmp_path: Path) -> None:
    storage, live = LocalStorage(tmp_path), generate_fleet(Random(3), clusters=3, topics=20).live
    names = sorted({row["cluster"] for row in live})
    with open_local_workbench(storage, "one") as bench:
        for name in names:
            rows = [row for row in live if row["cluster"] == name]
            batches = batch_rows([row | {"labels": row["labels"] or {}} for row in rows])
            assert bench.write_cluster("live", name, batches, LIVE).num_rows == len(rows)
        assert bench.count_rows("live", CLUSTER) == dict.fromkeys(names, 1)
        assert bench.count_rows("live") == Counter(row["cluster"] for row in live)
        with publish_tables(bench.tables, {"live": "data/live"}, "record"):
            storage.write("record", "")
        read = read_rows(storage, "data/live", LIVE)
        assert sort_rows(read) == sort_rows([dict.fromkeys(LIVE.names) | row for row in live])
        assert {row["cluster"] for row in read_rows(storage, "data/live", LIVE, names[:1])} == {names[0]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "record"]


def sort_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    with_labels = [{**row, "labels": row["labels"] or {}} for row in rows]
    return sorted(with_labels, key=lambda row: (row["cluster"], row["kind"], row["name"]))


@pytest.mark.parametrize(
    ("name", "folder"), [("eu-1", "cluster=eu-1"), ("a:b", "cluster=a%3Ab"), ("50%", "cluster=50%25")]
)
def test_partition_folder_is_escaped_like_spark_does(name: str, folder: str) -> None:
    assert format_partition(name) == folder
    assert parse_partition(folder) == name


def test_failed_publication_removes_tables(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)

    def publish() -> None:
        with open_local_workbench(storage, "one") as bench:
            bench.write("findings", [], FINDINGS)
            with publish_tables(bench.tables, {"findings": "findings/audit_id=one"}, "record"):
                assert list(tmp_path.rglob("*.parquet"))
                raise RuntimeError

    with pytest.raises(RuntimeError):
        publish()
    assert not list(tmp_path.rglob("*.parquet"))


def test_first_exception_of_a_thread_is_raised() -> None:
    def read(name: str) -> int:
        if name == "b":
            raise KeyError(name)
        return 1

    assert read_in_threads(("a", "c"), read, 2, lambda done, total: None) == (2, ())
    with pytest.raises(KeyError):
        read_in_threads(("a", "b", "c"), read, 1, lambda done, total: None)


def test_threads_start_no_cluster_after_limit() -> None:
    names = tuple("abcdefgh")
    size, skipped = read_in_threads(names, lambda name: 10, 2, lambda done, total: None, max_size=25)
    assert 30 <= size <= 40  # another cluster can be in progress when the limit is exceeded
    assert skipped == names[size // 10 :]


def test_findings_outside_coverage_are_not_fixed() -> None:
    earlier = build_findings(("eu", "a", "pending", "partitions"), ("us", "b", "missing", None))
    partial = LocalTables([], [], ["eu"], ["us"], newest=earlier, since=earlier)
    assert find_fixed([], partial) == earlier[:1]
    assert find_unchecked([], partial) == [earlier[1] | {"status": "unseen"}]
    assert find_unchecked([], LocalTables([], [], ["eu"], newest=earlier)) == []  # us has left the fleet
    whole = LocalTables([], [], ["eu", "us"], newest=earlier, since=earlier)
    unread = build_findings(("us", "b", "unreachable", None), seen=TODAY)
    assert find_fixed(unread, whole) == earlier[:1]
    assert find_unchecked(unread, whole) == [earlier[1] | {"status": "unseen"}]


@pytest.mark.parametrize(
    ("name", "finding", "is_unseen"),
    [("d", "unmanaged", True), ("d", "policy", True), ("", "unmanaged", True), ("x", "unmanaged", False)],
)
def test_findings_of_unread_undeclared_objects_are_not_fixed(
    name: str, finding: str, is_unseen: bool
) -> None:
    """An object that could not be read, or a type of objects (without a name) that could not be listed."""
    (earlier,) = build_findings(("eu", "d", finding, None))
    unread = {"cluster": "eu", "kind": "Topic", "name": name, "error": "No response."}
    read = {"cluster": "us", "kind": "Topic", "name": "d", "error": None}
    tables = LocalTables([], [unread, read], ["eu", "us"], newest=[earlier], since=[earlier])
    assert find_fixed([], tables) == ([] if is_unseen else [earlier])
    assert find_unchecked([], tables) == ([earlier | {"status": "unseen"}] if is_unseen else [])


@pytest.mark.parametrize(
    ("prefix", "source", "is_unseen"),
    [("d/", None, True), ("", None, True), ("e/", None, False), ("d/", "all.yaml:1:1", False)],
)
def test_findings_of_unread_parts_are_not_fixed(prefix: str, source: str | None, is_unseen: bool) -> None:
    """A part without a prefix concerns all undeclared objects. Declared resources were compared."""
    (earlier,) = build_findings(("eu", "d/1", "policy", None))
    earlier["source"] = source
    part = {"cluster": "eu", "kind": "Topic", "name": prefix, "error": "No response.", "is_part": True}
    tables = LocalTables([], [part], ["eu"], newest=[earlier], since=[earlier])
    assert find_fixed([], tables) == ([] if is_unseen else [earlier])
    assert find_unchecked([], tables) == ([earlier | {"status": "unseen"}] if is_unseen else [])


def test_known_finding_keeps_its_first_seen_time() -> None:
    fleet = generate_fleet(Random(4), clusters=2, topics=20)
    names = sorted({row["cluster"] for row in fleet.live})
    first, _ = find_all(LocalTables(fleet.declared, fleet.live, names), lambda name: None)
    assert first
    assert {row["status"] for row in first} == {"new"}
    earlier = [row | {"first_seen": MONDAY} for row in first[1:]]
    again, _ = find_all(
        LocalTables(fleet.declared, fleet.live, names, newest=earlier, since=earlier), lambda name: None
    )
    assert [row["status"] for row in again].count("new") == 1
    assert {row["first_seen"] for row in again if row["status"] == "known"} == {MONDAY}


def test_missing_and_copied_snapshot_rows_are_errors() -> None:
    row = {"cluster": "eu", "kind": "Topic", "name": "a"}
    with pytest.raises(KdeclareError, match="1 rows of eu, but 2 rows"):
        require_unaltered([row], [SnapshotCluster("eu", resources=1)], "DIR")
    with pytest.raises(KdeclareError, match="more than one row for Topic/a of eu"):
        require_unaltered([row, row, row], [SnapshotCluster("eu", resources=1)], "DIR")


def test_documented_program_reads_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    monkeypatch.chdir(tmp_path)
    line = ["fleet", "audit", str(fleet.file), "--out", "audits", "--engine", "local"]
    assert main([*line, "--snapshot", str(fleet.snapshots)]) == 0
    summary = json.loads((tmp_path / "audits" / "summary.json").read_text())
    capsys.readouterr()
    exec(READ_AUDITS, {})
    assert capsys.readouterr().out == f"{summary['audit_id']} {summary['rows']['findings']}\n"


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--engine", "local"], []], ids=["local", "auto"])
def test_local_audit_needs_no_spark(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    monkeypatch.setitem(sys.modules, "pyspark", None)  # an import of Spark would fail
    out = tmp_path / "out"
    line = ["fleet", "audit", str(fleet.file), "--out", str(out), "--snapshot", str(fleet.snapshots)]
    line += options
    assert main(line) == 0
    first = json.loads((out / "summary.json").read_text())
    assert sum(first["found"].values()) > 0
    assert main(line) == 0
    second = json.loads((out / "summary.json").read_text())
    assert second["since"]["known"] == sum(first["found"].values())
    assert second["since"]["new"] == 0
    assert (out / "report.html").exists()


def test_large_fleet_without_java_names_the_local_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**SECRETS, "JAVA_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    monkeypatch.setattr("kdeclare.app.fleet.local_audit.MAX_LOCAL_ROWS", 1)
    line = ["fleet", "audit", str(fleet.file), "--out", str(tmp_path / "out")]
    assert main([*line, "--snapshot", str(fleet.snapshots)]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "error: Java was not found" in told
    assert "Pass --engine local to process the fleet without Spark." in told


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        (["--out", "s3a://bucket/audits"], "--out s3a://bucket/audits"),
        (["--out", "audits", "--master", "local[2]"], "does not support --master"),
    ],
)
def test_local_engine_rejects_options_of_spark(
    arguments: list[str], detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    assert main(["fleet", "audit", str(fleet.file), "--engine", "local", *arguments]) == 1
    captured = capsys.readouterr()
    assert detail in " ".join(captured.err.split())
    assert "--engine spark" in captured.err


def test_accepted_drift_is_counted_apart_until_it_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    accept_drift(fleet)
    out = tmp_path / "audits"
    line = ["fleet", "audit", str(fleet.file), "--out", str(out), "--engine", "local"]
    line += ["--snapshot", str(fleet.snapshots), "--fail-on", "missing", "--cluster", "eu-1"]
    assert main(line) == 0, "all missing topics are accepted"
    assert "accepted until 2999-12-31. Agreed." in capsys.readouterr().out
    first = json.loads((out / "summary.json").read_text())
    assert "missing" not in first["found"]
    rows = read_rows(LocalStorage(out), f"findings/audit_id={first['audit_id']}", FINDINGS)
    assert {row["accepted"] for row in rows if row["kind"] == "Topic"} == {"topics"}
    count = first["accepted"][0]["count"]
    metrics = (out / "metrics.prom").read_text()
    assert f'kdeclare_accepted_findings{{fleet="shop",accepted="topics"}} {count}\n' in metrics

    accepted = fleet.folder / "accepted.yaml"
    accepted.write_text(accepted.read_text().replace("2999-12-31", "2020-12-31"))
    assert main(line) == 2
    again = json.loads((out / "summary.json").read_text())
    assert again["since"]["new"] == 0, "a finding that comes back keeps its age"
    assert sum(again["found"].values()) == sum(first["found"].values()) + count
    assert all(item["expired"] for item in again["accepted"])
    assert min(group["oldest"] for group in again["groups"]) == min(row["taken_at"] for row in rows).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def test_reports_of_teams_are_written_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    teams = tmp_path / "audits" / "teams"
    teams.mkdir(parents=True)
    (teams / "search.html").write_text("an earlier report")
    (teams / "notes.txt").write_text("mine")
    line = ["fleet", "audit", str(fleet.file), "--out", str(teams.parent), "--engine", "local"]
    assert main([*line, "--snapshot", str(fleet.snapshots), "--by", "team"]) == 0
    names = {path.name for path in teams.iterdir()}
    assert names == {
        "notes.txt",
        *(f"{team}.{end}" for team in ("(no team)", "checkout") for end in ("md", "html")),
    }
    assert "team checkout" in (teams / "checkout.md").read_text()
    assert "(no team)" not in (teams / "checkout.html").read_text().partition("<script")[0]


def test_large_fleet_without_pyspark_names_the_extra_and_the_local_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    monkeypatch.setattr("kdeclare.app.fleet.local_audit.MAX_LOCAL_ROWS", 1)
    for module in [name for name in sys.modules if name.startswith("kdeclare.fleet.spark")]:
        monkeypatch.delitem(sys.modules, module)
    # The import that fails replaces this attribute of the package, which later tests would see.
    monkeypatch.delattr(sys.modules["kdeclare.fleet"], "spark", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    line = ["fleet", "audit", str(fleet.file), "--out", str(tmp_path / "out")]
    assert main([*line, "--snapshot", str(fleet.snapshots)]) == 1
    output = " ".join(capsys.readouterr().err.split())
    assert "Fleet commands need the Python package 'pyspark', which is not installed." in output
    assert "Install it with `pip install 'kdeclare[fleet]'`." in output
    assert "Pass --engine local to process the fleet without Spark." in output
