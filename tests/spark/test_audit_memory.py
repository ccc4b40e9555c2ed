"""Comparison of audits: only findings that were checked again are new, known or fixed."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kdeclare.cli.main import main
from kdeclare.fleet.spark import diff
from kdeclare.fleet.spark.diff import AuditCoverage
from kdeclare.fleet.tables.rows import FINDINGS, LIVE
from tests.spark.real_fleet import RealFleet, make_real_fleet

pytestmark = pytest.mark.spark

MONDAY, TUESDAY, TODAY = (datetime(2026, 11, day, tzinfo=UTC) for day in (16, 17, 18))
FLEET = AuditCoverage(["eu", "us"])

Short = tuple[str, str, str, str | None]
"""Cluster, resource, finding and path."""

PENDING: Short = ("eu", "Topic/a", "pending", "partitions")
CHANGED: Short = ("us", "Topic/b", "changed", "configs.retention.ms")
LOST: Short = ("us", "Topic/z", "missing", None)
GONE: Short = ("eu", "Topic/c", "missing", None)
KEY: Short = ("eu", "Topic/a", "unmanaged", "configs.flush.ms")
UNMANAGED: Short = ("eu", "Topic/d", "unmanaged", None)
US_UNREAD: Short = ("us", "Cluster/us", "unreachable", None)
B_UNREAD: Short = ("us", "Topic/b", "unreachable", None)


def build_findings(spark: SparkSession, found: Iterable[Short], seen: datetime = TODAY) -> DataFrame:
    """Build the findings of an audit; ``seen`` is when each was first seen, and the time of the audit."""
    rows = [_build_row(short, seen) for short in found]
    return spark.createDataFrame(pa.Table.from_pylist(rows, FINDINGS))


def _build_row(short: Short, seen: datetime) -> dict[str, Any]:
    cluster, resource, finding, path = short
    kind, name = resource.split("/")
    known = {"cluster": cluster, "kind": kind, "name": name, "finding": finding, "path": path}
    times = {"taken_at": seen, "first_seen": seen, "status": "new", "labels": []}
    return dict.fromkeys(FINDINGS.names) | known | times


def read_shorts(found: DataFrame) -> set[Short]:
    return {(r["cluster"], f"{r['kind']}/{r['name']}", r["finding"], r["path"]) for r in found.collect()}


def read_first_seen(found: DataFrame) -> dict[Short, tuple[int, str]]:
    """Return the day on which each finding was first seen, and its status."""
    return {
        (r["cluster"], f"{r['kind']}/{r['name']}", r["finding"], r["path"]): (
            r["first_seen"].astimezone(UTC).day,
            r["status"],
        )
        for r in found.collect()
    }


@pytest.mark.parametrize(
    ("now", "before", "sight", "mended", "unseen"),
    [
        ([PENDING], [PENDING], FLEET, set(), set()),
        ([], [PENDING, GONE, UNMANAGED], FLEET, {PENDING, GONE, UNMANAGED}, set()),
        ([], [PENDING, CHANGED], AuditCoverage(["eu"], ["us"]), {PENDING}, {CHANGED}),
        ([], [PENDING, CHANGED], AuditCoverage(["eu"]), {PENDING}, set()),  # us has left the fleet
        ([US_UNREAD], [PENDING, CHANGED], FLEET, {PENDING}, {CHANGED}),
        ([US_UNREAD], [US_UNREAD, CHANGED], FLEET, set(), {CHANGED}),
        ([B_UNREAD], [CHANGED, LOST], FLEET, {LOST}, {CHANGED}),
        ([CHANGED], [US_UNREAD], FLEET, {US_UNREAD}, set()),
        ([], [KEY, UNMANAGED], AuditCoverage(["eu"], unmanaged_keys=False), {UNMANAGED}, {KEY}),
        ([KEY], [], FLEET, set(), set()),
    ],
)  # fmt: skip
def test_findings_outside_coverage_are_not_fixed(
    spark: SparkSession, now: list[Short], before: list[Short], sight: AuditCoverage, mended: set[Short],
    unseen: set[Short],
) -> None:  # fmt: skip
    found, earlier = build_findings(spark, now), build_findings(spark, before, MONDAY)
    live = build_unread_rows(spark, ("us", "Topic", "unrelated"))
    assert read_shorts(diff.find_fixed(found, earlier, live, sight)) == mended
    assert read_shorts(diff.find_unchecked(found, earlier, live, sight)) == unseen


def build_unread_rows(spark: SparkSession, *unread: tuple[str, str, str]) -> DataFrame:
    """Build the table of live objects: these could not be read, unlike a topic and a cluster."""
    rows = [{"cluster": c, "kind": k, "name": n, "error": "No response."} for c, k, n in unread]
    rows += [
        {"cluster": "us", "kind": "Topic", "name": "d"},
        {"cluster": "eu", "kind": "Cluster", "name": "eu"},
    ]
    return spark.createDataFrame(
        pa.Table.from_pylist([dict.fromkeys(LIVE.names) | row for row in rows], LIVE)
    )


@pytest.mark.parametrize(
    ("name", "before", "is_unseen"),
    [
        ("d", UNMANAGED, True),
        ("d", ("eu", "Topic/d", "policy", None), True),
        ("", UNMANAGED, True),
        ("x", UNMANAGED, False),
    ],
)
def test_findings_of_unread_undeclared_objects_are_not_fixed(
    spark: SparkSession, name: str, before: Short, is_unseen: bool
) -> None:
    """An object that could not be read, or a type of objects (without a name) that could not be listed."""
    found, earlier = build_findings(spark, []), build_findings(spark, [before], MONDAY)
    live = build_unread_rows(spark, ("eu", "Topic", name))
    assert read_shorts(diff.find_fixed(found, earlier, live, FLEET)) == (set() if is_unseen else {before})
    assert read_shorts(diff.find_unchecked(found, earlier, live, FLEET)) == ({before} if is_unseen else set())


@pytest.mark.parametrize(
    ("prefix", "source", "is_unseen"),
    [("d", None, True), ("", None, True), ("e", None, False), ("d", "all.yaml:1:1", False)],
)
def test_findings_of_unread_parts_are_not_fixed(
    spark: SparkSession, prefix: str, source: str | None, is_unseen: bool
) -> None:
    """A part without a prefix concerns all undeclared objects. Declared resources were compared."""
    before = ("eu", "Topic/d1", "policy", None)
    found = build_findings(spark, [])
    earlier = build_findings(spark, [before], MONDAY).withColumn("source", f.lit(source).cast("string"))
    live = build_unread_rows(spark, ("eu", "Topic", prefix)).withColumn("is_part", f.col("error").isNotNull())
    assert read_shorts(diff.find_fixed(found, earlier, live, FLEET)) == (set() if is_unseen else {before})
    assert read_shorts(diff.find_unchecked(found, earlier, live, FLEET)) == ({before} if is_unseen else set())


def test_finding_keeps_its_first_seen_time(spark: SparkSession) -> None:
    found = build_findings(spark, [PENDING, GONE, CHANGED]).drop("first_seen", "status")
    assert read_first_seen(diff.add_first_seen(found, None, None)) == dict.fromkeys(
        [PENDING, GONE, CHANGED], (18, "new")
    )
    newest = build_findings(spark, [PENDING], MONDAY).unionByName(build_findings(spark, [GONE], TUESDAY))
    assert read_first_seen(diff.add_first_seen(found, newest, newest)) == {
        PENDING: (16, "known"),
        GONE: (17, "known"),
        CHANGED: (18, "new"),
    }


def test_finding_new_since_older_audit_keeps_first_seen_time(spark: SparkSession) -> None:
    """An older audit determines what is new; the latest one determines when it was first seen."""
    found = build_findings(spark, [PENDING, GONE, CHANGED, KEY]).drop("first_seen", "status")
    newest = build_findings(spark, [PENDING, GONE], TUESDAY)
    since = build_findings(spark, [PENDING, CHANGED], MONDAY)
    assert read_first_seen(diff.add_first_seen(found, newest, since)) == {
        PENDING: (17, "known"),
        GONE: (17, "new"),
        CHANGED: (18, "known"),  # it was fixed in between, and came back
        KEY: (18, "new"),
    }


class Audits:
    """Successive audits of the snapshot of one fleet."""

    def __init__(self, fleet: RealFleet) -> None:
        self.fleet, self.out = fleet, fleet.folder / "out"

    def __call__(self, *more: str) -> dict[str, Any]:
        """Return the summary of a successful audit."""
        line = ["fleet", "audit", str(self.fleet.file), "--out", str(self.out), "--engine", "spark", *more]
        assert main([*line, "--snapshot", str(self.fleet.snapshots)]) == 0
        summary: dict[str, Any] = json.loads((self.out / "summary.json").read_text())
        return summary

    def rows(self, summary: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the findings of an audit."""
        folder = self.out / f"findings/audit_id={summary['audit_id']}"
        rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
        return rows


@pytest.mark.thorough
def test_partial_audits_keep_findings_of_other_clusters(
    in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audits = Audits(make_real_fleet(tmp_path / "fleet", monkeypatch))
    first = audits()
    everything = sum(first["found"].values())
    of_eu_2 = sum(next(c["found"] for c in first["clusters"] if c["name"] == "eu-2").values())
    assert 0 < of_eu_2 < everything

    part = audits("--cluster", "eu-2", "--no-unmanaged-configs")
    assert sum(part["found"].values()) == of_eu_2
    assert part["since"] | {"new": 0, "known": of_eu_2, "mended": 0} == part["since"]
    assert sum(part["unseen"].values()) == everything - of_eu_2

    last = audits("--since", first["audit_id"])
    assert last["since"]["audit_id"] == first["audit_id"]
    assert last["since"] | {"new": 0, "known": everything, "mended": 0} == last["since"]
    assert last["unseen"] == {}
    assert [sum(point["found"].values()) for point in last["trend"]] == [everything, everything]
    times = {row["first_seen"] for row in audits.rows(last)}
    assert times == {row["first_seen"] for row in audits.rows(first)}
