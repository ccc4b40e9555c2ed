"""``python -m benchmarks.fleet.incremental``: audit an unchanged fleet again, and compare with full audits.

The audits are complete commands in one process per engine. Only two functions are replaced: the rows of the
clusters and of the manifests come from generated files.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.synthetic_fleet import write
from kdeclare.app.fleet import local_audit, spark_audit
from kdeclare.app.fleet.audit import AuditOptions, audit_fleet
from kdeclare.app.fleet.job import Engine, FleetOptions
from kdeclare.core.plans.run import MoveProgress
from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.tables.fingerprints import hash_declared_row

_DECLARED, _LIVE = "declared", "live"
_READING = "Reading"


def read_rows(data: str, table: str, locator: object, name: str) -> Iterator[pa.RecordBatch]:
    """Read the generated rows of a cluster, as `cluster_rows.read_live` and `read_declared` do."""
    return iter(pq.read_table(Path(data) / f"hashed-{table}" / f"{name}.parquet").to_batches())


def _hash_rows(data: Path) -> list[str]:
    """Write the generated tables with the hashes that `read_declared` would add. Return the clusters."""
    files = sorted((data / _LIVE).glob("*.parquet"))
    for table in (_DECLARED, _LIVE):
        (data / f"hashed-{table}").mkdir(exist_ok=True)
        for file in files:
            target = data / f"hashed-{table}" / file.name
            if target.exists():
                continue
            rows = pq.read_table(data / table / file.name)
            if table == _DECLARED:
                hashes = [hash_declared_row(row) for row in rows.to_pylist(maps_as_pydicts="strict")]
                if "row_hash" in rows.column_names:
                    rows = rows.drop_columns(["row_hash"])
                rows = rows.append_column("row_hash", pa.array(hashes, pa.int64()))
            pq.write_table(rows, target)
    return [file.stem for file in files]


def _write_fleet(folder: Path, clusters: list[str]) -> Path:
    entries = "".join(
        f"    - {{name: {name}, bootstrapServers: '{name}:9092', manifests: [manifests]}}\n"
        for name in clusters
    )
    (folder / "manifests").mkdir(exist_ok=True)
    file = folder / "fleet.yaml"
    file.write_text(
        f"apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {{name: synthetic}}\nspec:\n  clusters:\n{entries}"
    )
    return file


def _audit(engine: Engine, file: Path, out: Path, *, full: bool) -> tuple[float, float]:
    """Audit the fleet. Return the seconds of the whole audit, and the seconds after the rows were read."""
    started = read_until = time.perf_counter()

    def progress(what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
        nonlocal read_until
        if what.startswith(_READING):
            read_until = time.perf_counter()

    audit = audit_fleet(
        FleetOptions(file, str(out), engine=engine), AuditOptions(full=full), progress=progress
    )
    ended = time.perf_counter()
    unchanged = audit.summary.unchanged_count
    assert unchanged in (0, len(audit.summary.clusters)), unchanged
    print(
        f"{ended - started:7.2f} s, {ended - read_until:7.2f} s after reading, {unchanged} unchanged",
        file=sys.stderr,
    )
    return ended - started, ended - read_until


def _measure(engine: Engine, file: Path, out: Path, rounds: int) -> None:
    _audit(engine, file, out, full=True)
    times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for _ in range(rounds):
        for full in (True, False):
            times[full].append(_audit(engine, file, out, full=full))
    full_s, same_s = (
        [statistics.median(column) for column in zip(*times[full], strict=True)] for full in (True, False)
    )
    ratios = [same / full for same, full in zip(same_s, full_s, strict=True)]
    print(
        f"| {engine} | {full_s[0]:.1f} s | {same_s[0]:.1f} s | {ratios[0]:.2f} × "
        f"| {full_s[1]:.1f} s | {same_s[1]:.1f} s | {ratios[1]:.2f} × |",
        flush=True,
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet.incremental", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of the generated fleet"
    )
    parser.add_argument("--clusters", type=int, default=20, metavar="N")
    parser.add_argument("--topics", type=int, default=2_500, metavar="N", help="topics per cluster")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="figures are medians of the rounds"
    )
    options = parser.parse_args()
    data = options.data / f"{options.clusters}-{options.topics}"
    write(data, options.clusters, options.topics)
    file = _write_fleet(data, _hash_rows(data))
    modules: tuple[Any, ...] = (local_audit, spark_audit)
    for module in modules:
        readers: dict[str, Callable[..., Any]] = {
            "read_declared": partial(read_rows, str(data), _DECLARED),
            "read_live": partial(read_rows, str(data), _LIVE),
        }
        for name, reader in readers.items():
            setattr(module, name, reader)
    print(f"{options.clusters * options.topics:,} topics in {options.clusters} clusters\n")
    print(
        "| engine | full audit | unchanged | ratio | full, after reading | unchanged, after reading | ratio |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    _measure(Engine.LOCAL, file, data / "local", options.rounds)
    with spark_session("local[2]", {}, log=None) as spark:
        from kdeclare.fleet.spark import session

        def share_session(*_: object, **__: object) -> Any:
            from contextlib import nullcontext

            return nullcontext(spark)

        session.spark_session = share_session
        _measure(Engine.SPARK, file, data / "spark", options.rounds)


if __name__ == "__main__":
    main()
