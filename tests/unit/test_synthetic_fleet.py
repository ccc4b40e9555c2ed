"""The fleets that benchmarks are run on: what is planted is what is found."""

from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from benchmarks.fleet import loop_way
from benchmarks.synthetic_fleet import write
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.rows import DECLARED, LIVE

pytestmark = pytest.mark.slow


def _read_rows(folder: Path, name: str) -> list[dict[str, object]]:
    table = ds.dataset(folder / name).to_table()
    rows: list[dict[str, object]] = table.to_pylist(maps_as_pydicts="strict")
    return rows


def test_audit_finds_planted_drift(tmp_path: Path) -> None:
    planted = write(tmp_path, clusters=2, topics=400, changed=0.2)
    found = Counter(
        row["finding"] for row in audit_rows(_read_rows(tmp_path, "declared"), _read_rows(tmp_path, "live"))
    )
    assert dict(found) == planted.findings
    assert set(found) == {"changed", "pending", "missing", "orphaned", "unmanaged"}
    assert pq.read_schema(tmp_path / "live" / "cluster-0000.parquet").equals(LIVE)
    assert pq.read_schema(tmp_path / "declared" / "cluster-0000.parquet").equals(DECLARED)


def test_seed_determines_rows(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    for folder, seed in ((one, 1), (two, 1), (three, 2)):
        write(folder, clusters=1, topics=30, seed=seed)
    assert _read_rows(one, "live") == _read_rows(two, "live")
    assert _read_rows(one, "declared") == _read_rows(two, "declared")
    assert _read_rows(one, "live") != _read_rows(three, "live")


def test_skew_gives_one_cluster_more_topics(tmp_path: Path) -> None:
    write(tmp_path, clusters=4, topics=100, changed=0, unmanaged_keys=0, skew=0.5)
    sizes = [pq.read_metadata(file).num_rows - 1 for file in sorted((tmp_path / "declared").glob("*"))]
    assert sizes[0] == 200
    assert sum(sizes) == 400


def test_loop_of_the_benchmark_finds_planted_drift(tmp_path: Path) -> None:
    planted = write(tmp_path, clusters=2, topics=100, changed=0.2)
    with loop_way.opened(unmanaged_keys=True) as run:
        run(tmp_path, tmp_path / "findings")
    found = pq.read_table(tmp_path / "findings", columns=["finding"]).column("finding").to_pylist()
    assert Counter(found) == planted.findings
