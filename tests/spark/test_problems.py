"""Translation of Spark's failures into diagnostics."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from tests.spark.programs import run_program

pytestmark = pytest.mark.spark


def catch_diagnostic(action: Callable[[], object]) -> Diagnostic:
    """Return the only diagnostic of an action, which must be short."""
    with pytest.raises(KdeclareError) as raised, translate_spark_errors():
        action()
    assert isinstance(raised.value.__cause__, Exception)
    (item,) = raised.value.diagnostics
    assert len(item.detail) < 400
    assert "\n" not in item.detail
    assert "SQLSTATE" not in item.detail
    assert "\tat " not in item.detail
    return item


def cut_in_half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def overwrite_start(data: bytes) -> bytes:
    return data[:100] + b"\x55" * 20000 + data[20100:]


def cut_footer(data: bytes) -> bytes:
    return data[:-200] + b"\x55" * 192 + data[-8:]


@pytest.mark.parametrize(
    "damage", [cut_in_half, overwrite_start, cut_footer, lambda _: b"nothing of the kind"]
)
@pytest.mark.parametrize("known", [True, False])
def test_damaged_file_is_reported(
    spark: SparkSession, tmp_path: Path, damage: Callable[[bytes], bytes], known: bool
) -> None:
    file = tmp_path / "a folder" / "part.zstd.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"a": range(100_000)}), file)
    file.write_bytes(damage(file.read_bytes()))

    def read() -> DataFrame:
        reader = spark.read.schema("a long") if known else spark.read
        return reader.parquet(f"file://{file.parent}")

    item = catch_diagnostic(lambda: read().groupBy().sum().collect())
    assert item.code == "damaged-file"
    assert item.detail.startswith(f"{file} cannot be decoded: ")


def test_missing_file_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    item = catch_diagnostic(lambda: spark.read.parquet(f"file://{tmp_path}/nowhere"))
    assert (item.code, item.detail) == ("cannot-read", f"{tmp_path}/nowhere does not exist.")


def test_file_deleted_during_query_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    table = spark.read.parquet(f"file://{tmp_path}")
    (tmp_path / "a.parquet").unlink()
    item = catch_diagnostic(table.collect)
    detail = f"{tmp_path}/a.parquet no longer exists. It may have been deleted while the command was running."
    assert (item.code, item.detail) == ("cannot-read", detail)


def test_unwritable_location_is_reported(spark: SparkSession) -> None:
    item = catch_diagnostic(lambda: spark.range(3).write.parquet("file:///proc/x"))
    assert item.code == "no-access"
    assert "/proc/x" in item.detail


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_full_disk_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        item = catch_diagnostic(lambda: spark.range(500_000).write.parquet(f"file://{tmp_path}/x"))
    finally:
        # lazy, because a failed task may not have closed its file yet
        subprocess.run(["umount", "--lazy", tmp_path], check=True)
    assert (item.code, item.detail) == ("disk-full", "Spark could not write: No space left on device.")


def test_missing_connector_is_reported(spark: SparkSession) -> None:
    item = catch_diagnostic(lambda: spark.range(3).write.parquet("s3a://bucket/x"))
    assert item.code == "spark-no-file-system"
    assert "spark.jars.packages" in item.hint


def test_dead_worker_is_reported(spark: SparkSession) -> None:
    item = catch_diagnostic(spark.sparkContext.parallelize([1]).map(lambda _: os._exit(3)).count)
    assert item.code == "worker-died"


def test_missing_package_is_reported(spark: SparkSession) -> None:
    def load(_: int) -> object:
        import no_such_package  # type: ignore[import-not-found]

        return no_such_package

    item = catch_diagnostic(spark.sparkContext.parallelize([1]).map(load).count)
    assert (item.code, item.detail) == (
        "python-missing",
        "The Python on the executors does not have the package no_such_package.",
    )


def test_ended_jvm_is_reported() -> None:
    def gone() -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    assert catch_diagnostic(gone).code == "spark-died"


def test_bug_in_query_is_reported(spark: SparkSession) -> None:
    item = catch_diagnostic(lambda: spark.range(3).select("nosuch"))
    assert item.code == "spark-failed"
    assert "nosuch" in item.detail


def test_other_exceptions_are_not_translated() -> None:
    with pytest.raises(ZeroDivisionError), translate_spark_errors():
        raise ZeroDivisionError


def test_translated_error_keeps_its_cause(spark: SparkSession) -> None:
    with pytest.raises(KdeclareError) as raised, translate_spark_errors():
        spark.range(3).select("nosuch")
    assert isinstance(raised.value.__cause__, (AnalysisException, Py4JJavaError))


STARTED_WRONG = """
import json, os, sys
from kdeclare.fleet.spark.session import spark_session
from kdeclare.core.diagnostics import KdeclareError

for master, conf, environ in json.loads(sys.argv[1]):
    os.environ |= environ
    try:
        with spark_session(master, conf) as spark:
            spark.sparkContext.parallelize([1]).map(lambda n: n).count()
    except KdeclareError as problem:
        print(problem.diagnostics[0].code, "|", problem.diagnostics[0].detail)
"""


def test_spark_start_failures_are_reported(tmp_path: Path) -> None:
    ways = [
        ("nosuch", {}, {}),
        ("local[2]", {"spark.driver.memory": "1x"}, {}),
        ("local[2]", {}, {"PYSPARK_PYTHON": "/nowhere/python3"}),
    ]
    done = run_program(tmp_path, STARTED_WRONG, {}, json.dumps(ways))
    assert done.stderr == ""
    assert [line.split(" | ")[0] for line in done.stdout.splitlines()] == [
        "spark-not-started",
        "spark-not-started",
        "python-missing",
    ]
