"""Write findings without Spark, to a Parquet file with the same content as Spark's file."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdeclare.fleet.drift import find_drift
from kdeclare.fleet.findings import Finding
from kdeclare.fleet.tables.rows import FINDING, FINDINGS

SCHEMA = pa.schema(list(FINDINGS)[: FINDINGS.get_field_index("first_seen")])
"""The columns that the comparison of a cluster fills. Audits fill the remaining columns later."""

_AT_ONCE = 50_000
"""The maximum number of rows in memory."""

Key = tuple[str, str, str]
"""The cluster, kind and name of a resource."""

Row = tuple[str, str, str | None, str | None, str | None, str | None, str | None]
"""A resource: kind, name, declared body, ownership record, live object, error, cluster-level live state."""


class LabelColumn:
    """The labels of all rows of a table.

    Converting the whole column at once is much faster than converting one row at a time.
    """

    def __init__(self, column: pa.Array | pa.ChunkedArray) -> None:
        maps = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        self._offsets = maps.offsets.to_pylist()
        self._pairs = list(zip(maps.keys.to_pylist(), maps.items.to_pylist(), strict=True))

    def __getitem__(self, n: int) -> Sequence[tuple[str, str]]:
        """Return the labels of a row."""
        return self._pairs[self._offsets[n] : self._offsets[n + 1]]


class FindingsFile(AbstractContextManager["FindingsFile"]):
    """Writes findings to one file in a new folder."""

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
        labels: LabelColumn,
        n: int | None,
        *,
        unmanaged_keys: bool,
    ) -> None:
        """Add all findings about one resource.

        labels: the labels of the declared rows. n: the index of the resource's declared row, or None.
        """
        own_labels = None if n is None else labels[n]
        items = find_drift(*row, own_labels, source)
        if not unmanaged_keys:
            items = tuple(item for item in items if not item.is_unmanaged_key)
        if items:
            self._add(taken_at, (cluster, *row[:2]), items, own_labels)

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
        """Write the remaining rows."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(pa.table(dict(self._columns), SCHEMA))
        for values in self._columns.values():
            values.clear()
