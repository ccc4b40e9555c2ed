"""One Spark for the tests of this folder: a process can have but one, so other sessions get processes."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kdeclare.fleet.spark.session import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two cores."""
    with spark_session("local[2]", {}, log=tmp_path_factory.mktemp("spark") / "spark.log") as session:
        yield session
