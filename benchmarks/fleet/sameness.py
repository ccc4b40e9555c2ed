"""Compare findings regardless of their order and of the method that wrote them."""

from dataclasses import dataclass
from pathlib import Path

import duckdb

_ROW = "taken_at, cluster, kind, name, finding, path, op, before, after, message, map_entries(labels)"


@dataclass(frozen=True, slots=True)
class Digest:
    """The number of rows by kind of finding, and the sum of their hashes."""

    rows: int
    total: int
    by_kind: dict[str, int]


def digest(findings: Path) -> Digest:
    """Compute the digest of the Parquet files of a folder."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'; set enable_progress_bar = false")
        table = f"read_parquet('{findings}/*.parquet')"
        rows = connection.execute(
            f"select finding, count(*), sum(hash({_ROW})::hugeint) from {table} group by finding"
        ).fetchall()
    by_kind = {kind: count for kind, count, _ in sorted(rows)}
    return Digest(sum(by_kind.values()), int(sum(total for _, _, total in rows)), by_kind)
