"""Hadoop's file systems fulfill the contract of a storage."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.spark.hadoop import HadoopStorage, open_storage
from kdeclare.fleet.tables.storage import LocalStorage
from tests.unit.fleet.test_storage import StorageContract

pytestmark = pytest.mark.spark


class TestHadoopStorage(StorageContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "a folder 100%"

    @pytest.fixture
    def storage(self, spark: SparkSession, folder: Path) -> HadoopStorage:
        return HadoopStorage(spark, f"file://{folder}")


def test_open_storage_uses_hadoop_for_other_schemes(spark: SparkSession, tmp_path: Path) -> None:
    assert open_storage("hdfs://name:9000/a/", spark) == HadoopStorage(spark, "hdfs://name:9000/a")
    assert open_storage(f"file://{tmp_path}", spark) == LocalStorage(tmp_path)
    assert open_storage(str(tmp_path), spark) == LocalStorage(tmp_path)


@pytest.mark.parametrize(("scheme", "moves_folders"), [("file", True), ("s3a", False)])
def test_object_store_does_not_move_folders(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, scheme: str, moves_folders: bool
) -> None:
    monkeypatch.setattr(HadoopStorage, "_get_file_system", lambda _: FileSystem(scheme))
    assert HadoopStorage(spark, f"{scheme}://bucket/a").moves_folders is moves_folders


@dataclass(frozen=True)
class FileSystem:
    """Has the method of Hadoop's file systems that returns the scheme. The connector of S3 has 690 MB."""

    scheme: str

    def getScheme(self) -> str:  # noqa: N802
        return self.scheme


def test_write_to_unknown_scheme_fails_without_credentials(spark: SparkSession) -> None:
    storage = open_storage("nosuch://user:pass@host/a", spark)
    with pytest.raises(KdeclareError) as raised:
        storage.write("b", "text")
    assert 'No FileSystem for scheme "nosuch"' in str(raised.value)
    assert "pass" not in str(raised.value)
