"""Publishing of tables, without Spark."""

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.spark.tables import open_workbench
from kdeclare.fleet.storage import LocalStorage, build_write_error
from kdeclare.fleet.unfinished_tables import publish_tables

NO_SPARK = cast(SparkSession, None)


class FailingObjectStore(LocalStorage):
    """A storage whose rename is a copy; the second one fails halfway."""

    def rename(self, path: str, to: str) -> None:
        if to == "data/two":
            self.write(f"{to}/part", self.read(f"{path}/part"))
            raise build_write_error(to, "Slow down")
        LocalStorage.rename(self, path, to)


def test_publish_removes_partial_results_after_failed_rename(tmp_path: Path) -> None:
    storage = FailingObjectStore(tmp_path)
    with open_workbench(NO_SPARK, storage, "1") as bench:
        for name in ("one", "two"):
            storage.write(f"{bench.folder}/{name}/part", name)
        with (
            pytest.raises(KdeclareError, match="Slow down"),
            publish_tables(bench.storage, bench.folder, {"one": "data/one", "two": "data/two"}),
        ):
            raise AssertionError
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_publish_keeps_existing_table(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.write("data/one/part", "old")
    with open_workbench(NO_SPARK, storage, "1") as bench:
        storage.write(f"{bench.folder}/one/part", "new")
        with (
            pytest.raises(KdeclareError, match="File exists"),
            publish_tables(bench.storage, bench.folder, {"one": "data/one"}),
        ):
            raise AssertionError
    assert storage.read("data/one/part") == "old"
    assert storage.names("") == ("data",)


def test_workbench_keeps_work_of_other_command(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    with open_workbench(NO_SPARK, storage, "1") as one, open_workbench(NO_SPARK, storage, "2") as two:
        storage.write(f"{one.folder}/t/part", "")
        storage.write(f"{two.folder}/t/part", "")
    assert storage.names("") == ()
    with open_workbench(NO_SPARK, storage, "1") as one:
        storage.write("_unfinished/2/t/part", "")
    assert storage.exists("_unfinished/2/t/part")
