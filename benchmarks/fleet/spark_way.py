"""Diff a fleet with Spark, in a session that stays open."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kdeclare.fleet.spark.diff import find_drift_rows
from kdeclare.fleet.spark.overview import read_counts
from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.spark.tables import to_spark_schema
from kdeclare.fleet.tables.rows import DECLARED, LIVE

_LONG_LIVED = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"}
"""Use both JIT compilers of Java, as docs/scale.md recommends for very large fleets."""


@contextmanager
def opened(master: str = "local[2]", *, unmanaged_keys: bool) -> Iterator[Any]:
    """Yield a function that compares the two tables in one folder, and writes findings to another folder."""
    with spark_session(master, _LONG_LIVED, log=None) as spark:

        def run(data: Path, out: Path) -> None:
            declared = spark.read.schema(to_spark_schema(DECLARED)).parquet(str(data / "declared"))
            live = spark.read.schema(to_spark_schema(LIVE)).parquet(str(data / "live"))
            counts = read_counts(declared, live)
            overview = counts.require_complete(sorted(counts.rows))
            find_drift_rows(declared, live, overview, unmanaged_keys=unmanaged_keys).write.parquet(str(out))

        yield run
