"""Findings that were made without Spark, as the Parquet file that Spark would have written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdeclare.fleet.drift import find_drift
from kdeclare.fleet.findings import Finding
from kdeclare.fleet.rows import FINDING, FINDINGS

SCHEMA = pa.schema([field for field in FINDINGS if field.name not in ("first_seen", "status")])
"""Before they are compared with an earlier audit's."""

_AT_ONCE = 50_000
"""Rows that are held at most."""

Key = tuple[str, str, str]
"""Cluster, kind and name."""

Row = tuple[str, str, str | None, str | None, str | None, str | None, str | None]
"""What `found` is asked about: kind, name, what is declared, owned and live, an error, the cluster's body."""


class FindingsFile(AbstractContextManager["FindingsFile"]):
    """The one file of a folder that is new."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._writer = pq.ParquetWriter(folder / "findings.parquet", SCHEMA, compression="zstd")
        self._columns: Mapping[str, list[Any]] = {name: [] for name in SCHEMA.names}

    def compare(
        self,
        taken_at: datetime,
        cluster: str,
        row: Row,
        source: str | None,
        labels: Any,
        n: int | None,
        *,
        unmanaged_keys: bool,
    ) -> None:
        """Add all that is found about one resource.

        labels: the column of the declared rows, as Arrow gives it. n: the resource's own, if it is declared;
        they are read only where something is found.
        """
        items = find_drift(*row, _read_labels(labels, n), source)
        if not unmanaged_keys:
            items = tuple(item for item in items if not item.is_unmanaged_key)
        if items:
            self._add(taken_at, (cluster, *row[:2]), items, None if n is None else labels[n].as_py())

    def _add(self, taken_at: datetime, key: Key, items: Sequence[Finding], labels: Any) -> None:
        columns = self._columns
        for item in items:
            columns["taken_at"].append(taken_at)
            for name, value in zip(("cluster", "kind", "name"), key, strict=True):
                columns[name].append(value)
            for name in FINDING.names:
                columns[name].append(getattr(item, name))
            columns["labels"].append(labels)
        if len(columns["name"]) >= _AT_ONCE:
            self._flush()

    def __exit__(self, *_: object) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(pa.table(dict(self._columns), SCHEMA))
        for values in self._columns.values():
            values.clear()


def _read_labels(labels: Any, n: int | None) -> Iterator[tuple[str, str]]:
    """The labels of a row of a column, read only where a message needs them; n is None without a row."""
    if n is not None:
        yield from labels[n].as_py() or ()
