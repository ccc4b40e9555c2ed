"""Audits and snapshots of real clusters while their storage fails: complete, or an error, but never smaller.

`tests/unit/fleet/test_faults.py` disturbs every step of every command, without brokers.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet.audit import audit_fleet
from kdeclare.app.fleet.job import Engine, FleetOptions
from kdeclare.app.fleet.snapshot import take_snapshot
from kdeclare.app.fleet.snapshot_diff import PREVIOUS, diff_snapshots
from kdeclare.core.progress import ignore_progress
from kdeclare.fleet.tables.records import AUDITS, SNAPSHOTS, list_record_ids
from kdeclare.fleet.tables.storage import LocalStorage
from tests.kafka.fleet.fleet_folder import (
    CLUSTERS,
    FleetFolder,
    RunningClusters,
    build_topic_spec,
    dump_manifest,
    write_document,
)
from tests.polling import wait_for
from tests.table_faults import Fault, check_outcome, disturb_everywhere, use_faulty_storage

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

INTERVAL = 9
"""With the quick profile, one of so many steps of a command is disturbed."""


@dataclass(frozen=True)
class LiveFleet:
    """Three real clusters, and a folder for audits and snapshots of them."""

    file: Path
    out: Path

    @property
    def options(self) -> FleetOptions:
        """The options of all commands."""
        return FleetOptions(self.file, str(self.out), engine=Engine.LOCAL)

    def audit(self) -> Any:
        """Audit the clusters. Return the ids of the new, the known and the fixed findings."""
        audit = audit_fleet(self.options, environ={})
        assert [cluster.error for cluster in audit.summary.clusters] == [None] * len(CLUSTERS)
        return sorted((row.id, row.status) for row in audit.rows), sorted(row.id for row in audit.mended)

    def snapshot(self) -> Any:
        """Take a snapshot. Return its clusters."""
        clusters = take_snapshot(self.options, {}, ignore_progress).clusters
        return [replace(cluster, taken_at=None) for cluster in clusters]

    def diff(self) -> Any:
        """Return what differs between the latest two snapshots."""
        compared = diff_snapshots(self.options, PREVIOUS, "latest", {}, ignore_progress)
        return [(change.cluster, change.name) for change in compared.diff.changes], compared.diff.unknown

    def list_ids(self, records: str) -> tuple[str, ...]:
        """Return the ids of all audits or snapshots."""
        return list_record_ids(LocalStorage(self.out), records)

    def copy(self, folder: Path) -> "LiveFleet":
        """Return the same fleet with a copy of the folder of results."""
        shutil.copytree(self.out, folder, dirs_exist_ok=True)
        return replace(self, out=folder)


@pytest.fixture(scope="module")
def live(clusters: RunningClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveFleet]:
    """One audit and one snapshot exist. Since then, topics were created, deleted and altered."""
    folder = FleetFolder(clusters, tmp_path_factory.mktemp("faults"))
    entries = [
        {"name": name, "bootstrapServers": folder.bootstrap(name), "manifests": [f"{name}.yaml"]}
        for name in CLUSTERS
    ]
    write_document(folder.folder / "fleet.yaml", "Fleet", {"clusters": entries})
    for name in CLUSTERS:
        documents = (dump_manifest(t, build_topic_spec(retention_ms=5000), name) for t in ("f.a", "f.b"))
        (folder.folder / f"{name}.yaml").write_text("---\n".join(documents))
        with folder.open_other_client(name) as client:
            client.create("f.a", 1, retention_ms="5000")
            client.create("f.b", 1, retention_ms="4000")
    (folder.folder / "out").mkdir()
    live = LiveFleet(folder.folder / "fleet.yaml", folder.folder / "out")
    live.audit()
    live.snapshot()
    with folder.open_other_client("eu-1") as client:
        client.set("f.a", "retention.ms", "3000")
        client.set("f.b", "retention.ms", "5000")
    with folder.open_other_client("lab") as client:
        client.delete("f.a")
        client.create("f.c", 2)
    with use_faulty_storage():
        yield live
    for name in CLUSTERS:
        with folder.open_other_client(name) as client:
            client.delete(*(("f.b", "f.c") if name == "lab" else ("f.a", "f.b")))


@pytest.mark.parametrize("fault", Fault)
def test_audit_is_complete_or_fails(live: LiveFleet, tmp_path: Path, fault: Fault) -> None:
    expected = live.copy(tmp_path / "expected").audit()
    rows, mended = expected
    assert {status for _, status in rows} == {"new", "known"}
    assert len(mended) == 1
    (earlier_id,) = live.list_ids(AUDITS)
    count = 0
    for case, outcome, step in disturb_everywhere(live, tmp_path, fault, LiveFleet.audit, INTERVAL):
        count += 1
        check_outcome(outcome, expected, step)
        assert case.list_ids(AUDITS)[0] == earlier_id, step
        if len(case.list_ids(AUDITS)) == 1:
            assert outcome.result is None, step
            assert case.audit() == expected, step
    assert count >= 1


@pytest.mark.parametrize("fault", Fault)
def test_snapshot_is_complete_or_fails(live: LiveFleet, tmp_path: Path, fault: Fault) -> None:
    case = live.copy(tmp_path / "expected")
    expected, difference = case.snapshot(), case.diff()
    assert difference == ([("eu-1", "f.a"), ("eu-1", "f.b"), ("lab", "f.a"), ("lab", "f.c")], ())
    (earlier_id,) = live.list_ids(SNAPSHOTS)
    count = 0
    for case, outcome, step in disturb_everywhere(live, tmp_path, fault, LiveFleet.snapshot, INTERVAL):
        count += 1
        check_outcome(outcome, expected, step)
        assert case.list_ids(SNAPSHOTS)[0] == earlier_id, step
        if len(case.list_ids(SNAPSHOTS)) == 1:
            assert outcome.result is None, step
            assert case.snapshot() == expected, step
        elif fault is not Fault.LOSE:
            assert case.diff() == difference, step
    assert count >= 1


def test_killed_snapshot_leaves_none_behind(live: LiveFleet, tmp_path: Path) -> None:
    """The process is killed as soon as it has written a file."""
    case = live.copy(tmp_path / "killed")
    files = list_files(case.out)
    line = [sys.executable, "-m", "kdeclare", "fleet", "snapshot", "fleet.yaml", "--out", str(case.out)]
    process = subprocess.Popen(
        line, cwd=live.file.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: list_files(case.out) != files or process.poll() is not None, 120, every=0.005)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    assert len(case.list_ids(SNAPSHOTS)) == 1
    expected = live.copy(tmp_path / "expected")
    assert (case.snapshot(), case.diff()) == (expected.snapshot(), expected.diff())


def list_files(folder: Path) -> set[Path]:
    """Return the files of tables in a folder."""
    return set(folder.rglob("*.parquet"))
