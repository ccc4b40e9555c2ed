"""One Spark session for the tests of this folder: a process can have only one, so others need processes."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark.real_fleet import SECRETS
from tests.spark.sharing import open_spark, share_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Provide the session."""
    with open_spark(tmp_path_factory.mktemp("spark") / "spark.log") as session:
        yield session


@pytest.fixture
def in_shared_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make commands that a test runs in this process use the shared session."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with share_session(spark):
        yield
