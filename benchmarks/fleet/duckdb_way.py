"""Diff a fleet with DuckDB: join and filter the tables in SQL, then diff each remaining row in Python."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.fleet.findings_file import FindingsFile, LabelColumn
from kdeclare.fleet.tables.rows import CLUSTER

_PASSES = """
    d.name is null or l.name is null or d.desired is null or d.always or l.error is not null
    or d.need is null or d.forbid is null or d.keys is null
    or l.has is null or l.keys is null
    or not list_has_all(l.has, d.need)
    or list_has_any(d.forbid, l.has)
    or {keys}
"""
_KEYS = {True: "not list_has_all(d.keys, l.keys)", False: "d.gone is null or list_has_any(d.gone, l.keys)"}
_SURVIVORS = f"""
    select coalesce(d.cluster, l.cluster) as cluster, coalesce(d.kind, l.kind) as kind,
        coalesce(d.name, l.name) as name, d.desired, d.owned, l.body, l.error, d.source, d.labels
    from read_parquet($declared) d
    full join read_parquet($live) l on d.cluster = l.cluster and d.kind = l.kind and d.name = l.name
    where coalesce(d.kind, l.kind) <> '{CLUSTER}' and coalesce(d.alone, true) and coalesce({_PASSES}, true)
"""
_CLUSTERS = f"""
    select l.cluster, l.taken_at, l.body
    from read_parquet($declared) d join read_parquet($live) l using (cluster)
    where d.kind = '{CLUSTER}' and l.kind = '{CLUSTER}' and d.error is null and l.error is null
"""
_AT_ONCE = 20_000


@contextmanager
def opened(*, unmanaged_keys: bool) -> Iterator[Any]:
    """Yield a function that compares the two tables in one folder, and writes findings to another folder."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'; set enable_progress_bar = false")

        survivors = _SURVIVORS.format(keys=_KEYS[unmanaged_keys])

        def run(data: Path, out: Path) -> None:
            files = {name: f"{data}/{name}/*.parquet" for name in ("declared", "live")}
            known = connection.sql(_CLUSTERS, params=files).to_arrow_table().to_pylist()
            clusters = {row["cluster"]: (row["taken_at"], row["body"]) for row in known}
            with FindingsFile(out) as findings:
                for batch in connection.sql(survivors, params=files).to_arrow_reader(_AT_ONCE):
                    _compare(batch, clusters, findings, unmanaged_keys)

        yield run


def _compare(
    batch: Any, clusters: dict[str, tuple[Any, Any]], findings: FindingsFile, unmanaged_keys: bool
) -> None:
    *columns, label_column = batch.columns
    labels = LabelColumn(label_column)
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    for n, (cluster, kind, name, desired, owned, body, error, source) in enumerate(rows):
        if cluster in clusters:
            taken_at, within = clusters[cluster]
            row = (kind, name, desired, owned, body, error, within)
            findings.compare(taken_at, cluster, row, source, labels, n, unmanaged_keys=unmanaged_keys)
