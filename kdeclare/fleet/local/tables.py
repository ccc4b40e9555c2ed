"""Write, read and publish the Parquet tables of a fleet without Spark.

The files have the same schemas and folders as the tables that Spark writes. Therefore, commands with and
without Spark can read each other's tables.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import require_written_rows
from kdeclare.fleet.tables.storage import LocalStorage, build_read_error, build_write_error
from kdeclare.fleet.tables.unfinished_tables import UnfinishedTables, open_unfinished_tables

_FILE = "part-00000.parquet"
_PARTITION = "cluster="
_ESCAPED_CHARACTERS = re.compile(r"[\x01-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
"""The characters that Spark escapes in the names of partition folders."""

ReportCluster = Callable[[int, int], None]
"""A function that receives the number of clusters that have been read, and the number of all clusters."""


@dataclass(frozen=True, slots=True)
class LocalWorkbench:
    """Writes and reads the tables of one command. If rows of a table are missing, reading fails.

    storage: where the tables are stored.
    """

    storage: LocalStorage
    tables: UnfinishedTables
    _row_counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def write(self, name: str, rows: Iterable[Row], schema: pa.Schema) -> None:
        """Write a table that is not partitioned. Raises KdeclareError."""
        listed = [_to_arrow_maps(row) for row in rows]
        self._write_file(name, _FILE, pa.Table.from_pylist(listed, schema))

    def write_cluster(
        self, name: str, cluster: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema
    ) -> pa.Table:
        """Write the rows of one cluster to its partition of a table, and return them.

        Raises KdeclareError.
        """
        table = pa.Table.from_batches(list(batches), schema)
        self._write_file(name, f"{format_partition(cluster)}/{_FILE}", table.drop_columns(["cluster"]))
        return table

    def read(self, name: str, schema: pa.Schema) -> list[Row]:
        """Read a table that this command has written. Raises KdeclareError if rows are missing."""
        rows = read_rows(self.storage, self.tables.find_path(name), schema)
        require_written_rows(name, sum(self._row_counts.get(name, {}).values()), len(rows))
        return rows

    def read_tables(self, name: str, schema: pa.Schema) -> dict[str, pa.Table]:
        """Read the rows that `write_cluster` has written, by cluster. Raises KdeclareError."""
        tables = read_cluster_tables(self.storage, self.tables.find_path(name), schema)
        written_count = sum(self._row_counts.get(name, {}).values())
        require_written_rows(name, written_count, sum(table.num_rows for table in tables.values()))
        return tables

    def read_cluster(self, name: str, cluster: str, schema: pa.Schema) -> list[Row]:
        """Read the rows that `write_cluster` has written for one cluster. Raises KdeclareError."""
        path = f"{format_partition(cluster)}/{_FILE}"
        rows = _read_file(self._find_folder(name) / path, schema, cluster)
        require_written_rows(name, self._row_counts[name][path], len(rows))
        return rows

    def count_rows(self, name: str, kind: str | None = None) -> Counter[str]:
        """Return the number of rows of each cluster in a table that `write_cluster` has written.

        kind: the kind of the rows to count; None for all rows. Raises KdeclareError.
        """
        counts: Counter[str] = Counter()
        for file in sorted(self._find_folder(name).glob(f"{_PARTITION}*/*.parquet")):
            try:
                rows = pq.ParquetFile(file).read(["kind"] if kind is not None else [])
            except (OSError, pa.ArrowException) as cause:
                raise build_read_error(str(file), str(cause)) from cause
            count = rows.num_rows if kind is None else rows["kind"].to_pylist().count(kind)
            counts[parse_partition(file.parent.name)] += count
        return counts

    def _find_folder(self, name: str) -> Path:
        return self.storage.folder / self.tables.find_path(name)

    def _write_file(self, name: str, path: str, table: pa.Table) -> None:
        """Write a file of a table. path: the path of the file in the table."""
        file = self._find_folder(name) / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, file, compression="snappy")
            self.tables.add_files(name, {path: file.stat().st_size})
        except (OSError, pa.ArrowException) as cause:
            raise build_write_error(str(file), getattr(cause, "strerror", None) or str(cause)) from cause
        self._row_counts.setdefault(name, {})[path] = table.num_rows


def _to_arrow_maps(row: Row) -> Row:
    labels = row.get("labels")
    return row if labels is None else {**row, "labels": list(labels.items())}


@contextmanager
def open_local_workbench(storage: LocalStorage, command_id: str) -> Iterator[LocalWorkbench]:
    """Provide the tables of one command. Finally, delete those that the ``with`` block did not publish."""
    with open_unfinished_tables(storage, command_id) as tables:
        yield LocalWorkbench(storage, tables)


def read_rows(
    storage: LocalStorage, path: str, schema: pa.Schema, clusters: Sequence[str] | None = None
) -> list[Row]:
    """Read a table, including the column ``cluster`` of a partitioned table. Raises KdeclareError.

    Columns that a file lacks are null. clusters: the names of the clusters to read; None for all.
    """
    rows = [
        row
        for file, cluster in _list_files(storage, path)
        if cluster is None or clusters is None or cluster in clusters
        for row in _read_file(file, schema, cluster)
    ]
    return rows if clusters is None else [row for row in rows if row["cluster"] in clusters]


def read_cluster_tables(
    storage: LocalStorage, path: str, schema: pa.Schema, clusters: Collection[str] | None = None
) -> dict[str, pa.Table]:
    """Read a table that is partitioned by cluster, as one Arrow table for each cluster. Raises KdeclareError.

    An Arrow table is much smaller than its rows, and often most columns are not needed; see `list_rows`.
    """
    tables: dict[str, list[pa.Table]] = {}
    for file, cluster in _list_files(storage, path):
        if cluster is not None and (clusters is None or cluster in clusters):
            table = _read_arrow(file, schema)
            if "cluster" in schema.names:
                column = pa.repeat(pa.scalar(cluster, pa.string()), table.num_rows)
                table = table.set_column(table.column_names.index("cluster"), "cluster", column)
            tables.setdefault(cluster, []).append(table)
    return {cluster: pa.concat_tables(parts) for cluster, parts in tables.items()}


def list_rows(table: pa.Table, columns: Sequence[str] | None = None) -> list[Row]:
    """Return the rows of an Arrow table, with only the given columns; None returns all columns."""
    selected = table if columns is None else table.select(list(columns))
    rows: list[Row] = selected.to_pylist(maps_as_pydicts="strict")
    return rows


def _list_files(storage: LocalStorage, path: str) -> Iterator[tuple[Path, str | None]]:
    """Yield the files of a table, each with the name of its cluster; None if the table is not partitioned."""
    folder = storage.folder / path
    if not folder.is_dir():
        raise build_read_error(str(folder), "the folder does not exist")
    for file in sorted(folder.rglob("*.parquet")):
        parts = file.relative_to(folder).parts
        if not any(part.startswith(("_", ".")) for part in parts):
            cluster = next((parse_partition(part) for part in parts if part.startswith(_PARTITION)), None)
            yield file, cluster


def _read_file(file: Path, schema: pa.Schema, cluster: str | None) -> list[Row]:
    rows = list_rows(_read_arrow(file, schema))
    if cluster is not None:
        for row in rows:
            row["cluster"] = cluster
    return rows


def _read_arrow(file: Path, schema: pa.Schema) -> pa.Table:
    try:
        # Version 0.1 wrote times with Spark as INT96, which has no time zone. They are in UTC.
        table = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
        columns = [
            table[field.name].cast(field.type)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)
    except (OSError, pa.ArrowException) as cause:
        raise build_read_error(str(file), str(cause)) from cause


def format_partition(cluster: str) -> str:
    """Return the name of a cluster's partition folder, in the form that Spark uses."""
    return _PARTITION + _ESCAPED_CHARACTERS.sub(lambda match: f"%{ord(match[0]):02X}", cluster)


def parse_partition(folder: str) -> str:
    """Return the name of the cluster whose partition folder has this name."""
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), folder.removeprefix(_PARTITION))


def read_in_threads(
    clusters: Sequence[str],
    read_cluster: Callable[[str], int],
    max_concurrency: int,
    report: ReportCluster,
    max_size: int | None = None,
) -> tuple[int, tuple[str, ...]]:
    """Call a function for every cluster, in threads. Return the sum of the results, and the skipped clusters.

    read_cluster: reads and writes one cluster, and returns its size. The first exception ends the work:
        clusters that have not been started are skipped, and the exception is raised.
    max_size: when the sum of the sizes exceeds this number, no further cluster is started; None for no limit.
    """
    total_size, waiting = 0, list(reversed(clusters))
    with ThreadPoolExecutor(max_workers=max(1, max_concurrency)) as pool:
        pending: set[Future[int]] = set()
        try:
            while pending or waiting:
                while waiting and len(pending) < max(1, max_concurrency):
                    pending.add(pool.submit(read_cluster, waiting.pop()))
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                total_size += sum(future.result() for future in done)
                report(len(clusters) - len(waiting) - len(pending), len(clusters))
                if max_size is not None and total_size > max_size:
                    skipped, waiting = tuple(reversed(waiting)), []
                    total_size += sum(future.result() for future in pending)
                    return total_size, skipped
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return total_size, ()
