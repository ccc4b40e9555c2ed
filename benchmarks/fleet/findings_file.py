"""Findings that were made without Spark, as the Parquet file that Spark would have written."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdeclare.fleet.finding import Found
from kdeclare.fleet.rows import FINDINGS, FOUND

SCHEMA = pa.schema([field for field in FINDINGS if field.name not in ("first_seen", "status")])
"""Before they are compared with an earlier audit's."""

_AT_ONCE = 50_000
"""Rows that are held at most."""

Key = tuple[str, str, str]
"""Cluster, kind and name."""


class FindingsFile(AbstractContextManager["FindingsFile"]):
    """The one file of a folder that is new."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._writer = pq.ParquetWriter(folder / "findings.parquet", SCHEMA, compression="zstd")
        self._columns: Mapping[str, list[Any]] = {name: [] for name in SCHEMA.names}

    def add(self, taken_at: datetime, key: Key, items: Sequence[Found], labels: Any) -> None:
        """All that was found about one resource; ``labels`` as Arrow gives them."""
        columns = self._columns
        for item in items:
            columns["taken_at"].append(taken_at)
            for name, value in zip(("cluster", "kind", "name"), key, strict=True):
                columns[name].append(value)
            for name in FOUND.names:
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
