"""One Spark for the tests of this folder: a process can have but one, so other sessions get processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from kdeclare.fleet.spark.problems import explained
from kdeclare.fleet.spark.session import spark_session
from tests.spark.programs import SHORT_LIVED
from tests.spark.real_fleet import SECRETS


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two cores; what the environment says of Spark stays out."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_"))]:
            patch.delenv(name)
        for name, value in {**SECRETS, **SHORT_LIVED}.items():
            patch.setenv(name, value)
        with spark_session("local[2]", {}, log=tmp_path_factory.mktemp("spark") / "spark.log") as session:
            yield session


@pytest.fixture
def in_shared_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that the test runs in this process take the one Spark of all tests, as warm as it is."""

    @contextmanager
    def shared(*_: object, **__: object) -> Iterator[SparkSession]:
        with explained():
            yield spark

    monkeypatch.setattr("kdeclare.fleet.spark.session.spark_session", shared)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
