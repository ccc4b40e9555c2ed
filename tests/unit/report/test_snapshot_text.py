"""The text of `fleet snapshot`."""

from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord
from kdeclare.report.fleet.snapshot_text import render_snapshot_text
from tests.browser.sample_audits import NOON, SILENT
from tests.unit.report.golden_files import check_golden

WHOLE = SnapshotCluster("eu-1", {}, "id", "4.1", NOON, 200, resources=203)


def make_record(*clusters: SnapshotCluster) -> SnapshotRecord:
    path = "data/day=2026-01-31/snapshot=20260131-120000-a1b2"
    return SnapshotRecord("20260131-120000-a1b2", "production", NOON, 12.3, path, clusters)


def test_complete_snapshot_matches_golden_file() -> None:
    check_golden("snapshot", render_snapshot_text(make_record(WHOLE, WHOLE), "s3a://audits/fleet"))


def test_partial_snapshot_matches_golden_file() -> None:
    part = SnapshotCluster("us-east-1", topics=10, resources=9, failed=2)
    check_golden(
        "snapshot-in-part",
        render_snapshot_text(make_record(WHOLE, SnapshotCluster("eu-3", error=SILENT), part), "out"),
    )


def test_snapshot_text_shortens_unread_clusters() -> None:
    text = render_snapshot_text(
        make_record(*[SnapshotCluster(f"c{n}", error="x\x1b[2J") for n in range(45)]), "out"
    )
    assert "  … and 25 more\n" in text
    assert "\x1b" not in text
