"""Diff a fleet with a loop: read the two files of each cluster, join them in a dictionary, compare rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fleet.findings_file import FindingsFile, LabelColumn
from kdeclare.fleet.tables.rows import CLUSTER

_DECLARED = ["kind", "name", "desired", "owned", "alone", "error", "source", "labels"]
_UNDECLARED = (None, None, None, True, None, None)
_LIVE = ["kind", "name", "body", "error", "taken_at"]


@contextmanager
def opened(*, unmanaged_keys: bool) -> Iterator[Any]:
    """Yield a function that compares the two tables in one folder, and writes findings to another folder."""
    yield partial(_run, unmanaged_keys)


def _run(unmanaged_keys: bool, data: Path, out: Path) -> None:
    with FindingsFile(out) as findings:
        for file in sorted((data / "live").glob("*.parquet")):
            declared = pq.read_table(data / "declared" / file.name, columns=_DECLARED)
            _compare(file.stem, declared, pq.read_table(file, columns=_LIVE), findings, unmanaged_keys)


def _compare(
    cluster: str, declared: pa.Table, live: pa.Table, findings: FindingsFile, unmanaged_keys: bool
) -> None:
    there = {(row[0], row[1]): row for row in _rows(live, _LIVE)}
    wanted = {(row[0], row[1]): (n, *row[2:]) for n, row in enumerate(_rows(declared, _DECLARED[:-1]))}
    _, _, within, wrong, taken_at = there.pop((CLUSTER, cluster))
    if wrong is not None or wanted.pop((CLUSTER, cluster))[-2] is not None:
        return
    labels = LabelColumn(declared.column("labels"))
    for kind, name in {**wanted, **there}:
        n, desired, owned, alone, _, source = wanted.get((kind, name), _UNDECLARED)
        _, _, body, error, _ = there.get((kind, name), (kind, name, None, None, None))
        if alone:
            row = (kind, name, desired, owned, body, error, within)
            findings.compare(taken_at, cluster, row, source, labels, n, unmanaged_keys=unmanaged_keys)


def _rows(table: pa.Table, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)
