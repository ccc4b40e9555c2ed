"""Failures while Spark processes a fleet: one error with its reason, and no partial results are left."""

import json
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kdeclare.cli.main import main
from tests.spark.real_fleet import SNAPSHOT, RealFleet, make_real_fleet

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def pristine_fleet(tmp_path_factory: pytest.TempPathFactory) -> RealFleet:
    """Provide a fleet that tests do not change."""
    with pytest.MonkeyPatch.context() as patch:
        return make_real_fleet(tmp_path_factory.mktemp("pristine"), patch)


class Shell:
    """Runs commands in the folder of a fleet, with the shared Spark session."""

    def __init__(self, fleet: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
        self.fleet, self.out, self._capsys = fleet, fleet.folder / "out", capsys

    def audit(self, *more: str) -> tuple[int, str]:
        """Run an audit of the snapshot; return its exit code and errors."""
        return self("audit", "--snapshot", str(self.fleet.snapshots), *more)

    def __call__(self, command: str, *more: str) -> tuple[int, str]:
        line = ["fleet", command, str(self.fleet.file), "--out", str(self.out), *more]
        return self._typed(line)

    def history(self, cluster: str, topic: str) -> tuple[int, str]:
        """Run `fleet history` for a topic; return its exit code and errors."""
        return self._typed(["fleet", "history", cluster, topic, "--out", str(self.fleet.snapshots)])

    def _typed(self, line: list[str]) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main([*line, "--engine", "spark"])
        return code, " ".join(self._capsys.readouterr().err.split())

    def read_files(self) -> dict[str, bytes]:
        """Return all files of the output folder."""
        found = (path for path in self.out.rglob("*") if path.is_file())
        return {str(path.relative_to(self.out)): path.read_bytes() for path in found}


@pytest.fixture
def shell(
    pristine_fleet: RealFleet, in_shared_spark: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Shell:
    shutil.copytree(pristine_fleet.folder, tmp_path / "fleet folder")
    return Shell(RealFleet(tmp_path / "fleet folder"), capsys)


def expect_one_error(said: str, *words: str) -> None:
    assert said.startswith("error: "), said
    assert said.count(" hint: ") == 1, said
    assert "Traceback" not in said
    assert "Internal error" not in said
    for part in words:
        assert part in said


def truncate_file(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def remove_all_rows(file: Path) -> None:
    file.write_bytes(b"")


def remove_some_rows(file: Path) -> None:
    pq.write_table(pq.read_table(file, partitioning=None).slice(0, 3), file)


def copy_file(file: Path) -> None:
    shutil.copy(file, file.with_name("copy.parquet"))


def replace_cluster_row(file: Path) -> None:
    """Replace the cluster's own row by another topic, so that the number of rows is unchanged."""
    rows = pq.read_table(file, partitioning=None)
    names = [{**row, "kind": "Topic"} if row["kind"] == "Cluster" else row for row in rows.to_pylist()]
    pq.write_table(pa.Table.from_pylist(names, rows.schema), file)


def delete_folder_of_cluster(file: Path) -> None:
    shutil.rmtree(file.parent)


def delete_snapshot(file: Path) -> None:
    shutil.rmtree(file.parents[1])


LOST = ("rows of eu-1, but ", "Take a new snapshot.")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            truncate_file,
            ("fleet folder/snapshots/data/", "part-0.parquet cannot be decoded", "Restore the file"),
        ),
        (remove_all_rows, (f"snapshot={SNAPSHOT} has 0 ", *LOST)),
        (remove_some_rows, (f"snapshot={SNAPSHOT} has 3 ", *LOST)),
        (replace_cluster_row, ("The table 'live' has no row for eu-1 (2 of 3 clusters are present).",)),
        (delete_folder_of_cluster, (f"snapshot={SNAPSHOT} has 0 ", *LOST)),
        (delete_snapshot, ("does not exist", SNAPSHOT)),
        (
            copy_file,
            ("more than one row for", "of eu-1", "A file of this snapshot may have been duplicated."),
        ),
    ],
)
def test_audit_of_damaged_snapshot_fails(
    shell: Shell, damage: Callable[[Path], None], words: tuple[str, ...]
) -> None:
    (file,) = shell.fleet.list_files("eu-1")
    damage(file)
    code, said = shell.audit()
    assert code == 1
    expect_one_error(said, *words)
    assert shell.read_files() == {}
    assert not (shell.out / "_unfinished").exists()


def test_audit_reports_cluster_missing_from_snapshot(shell: Shell) -> None:
    (file,) = (shell.fleet.snapshots / "snapshots").iterdir()
    record = json.loads(file.read_text())
    record["clusters"] = [cluster for cluster in record["clusters"] if cluster["name"] != "lab"]
    file.write_text(json.dumps(record))
    for path in shell.fleet.list_files("lab"):
        shutil.rmtree(path.parent)
    assert shell.audit()[0] == 1
    summary = json.loads((shell.out / "summary.json").read_text())
    errors = {cluster["name"]: cluster["error"] for cluster in summary["clusters"]}
    assert errors == {
        "eu-1": None,
        "eu-2": None,
        "lab": f"Snapshot {SNAPSHOT} does not include this cluster.",
    }


def test_partial_audit_ignores_damage_in_other_clusters(shell: Shell) -> None:
    remove_all_rows(shell.fleet.list_files("eu-1")[0])
    assert shell.audit("--cluster", "eu-2")[0] == 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [(truncate_file, ("cannot be decoded",)), (remove_all_rows, ("has 0 ", *LOST))],
)
def test_history_of_damaged_snapshot_fails(
    shell: Shell, damage: Callable[[Path], None], words: tuple[str, ...]
) -> None:
    (file,) = shell.fleet.list_files("eu-1")
    assert shell.history("eu-1", "t.1")[0] == 0
    damage(file)
    code, said = shell.history("eu-1", "t.1")
    assert code == 1
    expect_one_error(said, *words)
    assert shell.history("eu-2", "t.1")[0] == 0, "another cluster has other files"


@contextmanager
def limit_file_size(size: int, pid: int = 0) -> Iterator[None]:
    """Simulate a full disk with a limit on the file size of one process, which fails in the same way."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.thorough
def test_audit_on_full_disk_keeps_previous_audit(shell: Shell, spark: SparkSession) -> None:
    code, said = shell.audit()
    assert code == 0, said
    before = shell.read_files()
    assert {"summary.json", "report.md", "report.html"} < before.keys()
    java: psutil.Popen = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    with limit_file_size(1000, java.pid):
        code, said = shell.audit()
    assert code == 1
    expect_one_error(said, "Spark could not write: File too large.", "Free up disk space")
    assert shell.read_files() == before
    with limit_file_size(100):
        code, said = shell.audit()
    assert code == 1
    expect_one_error(said, "Cannot write", "File too large.", "the free space")
    assert shell.read_files() == before
    assert not (shell.out / "_unfinished").exists()


def test_snapshot_on_full_disk_leaves_no_files(shell: Shell) -> None:
    with limit_file_size(100):
        code, said = shell("snapshot", "--timeout", "0.1")
    assert code == 1
    expect_one_error(said, f"Cannot write {shell.out}", "File too large.")
    assert shell.read_files() == {}


def test_audit_after_damaged_audit_fails(shell: Shell) -> None:
    assert shell.audit()[0] == 0
    for file in shell.out.rglob("findings/**/*.parquet"):
        truncate_file(file)
    before = shell.read_files()
    code, said = shell.audit()
    assert code == 1
    expect_one_error(said, "fleet folder/out/findings/audit_id=", "cannot be decoded")
    assert shell.read_files() == before


def test_audit_fails_if_report_cannot_be_replaced(shell: Shell) -> None:
    (shell.out / "report.html").mkdir(parents=True)
    code, said = shell.audit()
    assert code == 1
    expect_one_error(said, "Cannot write", "Is a directory")
    assert shell.read_files() == {}
