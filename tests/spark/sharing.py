"""One Spark for many commands: it starts only once, and later commands reuse its compiled code."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from tests.spark.programs import SHORT_LIVED
from tests.spark.real_fleet import SECRETS

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings for many queries of few rows: Spark interprets them, because compiling each takes longer."""


@contextmanager
def open_spark(log: Path) -> Iterator[SparkSession]:
    """Provide a session with two cores that ignores Spark settings of the environment.

    It interprets queries; the sessions of commands in separate processes compile them.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_"))]:
            patch.delenv(name)
        for name, value in {**SECRETS, **SHORT_LIVED}.items():
            patch.setenv(name, value)
        with spark_session("local[2]", _INTERPRETED, log=log) as session:
            yield session


@contextmanager
def share_session(session: SparkSession) -> Iterator[None]:
    """Make commands that run in this process use this warm session."""

    @contextmanager
    def taken(*_: object, **__: object) -> Iterator[SparkSession]:
        with translate_spark_errors():
            yield session

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kdeclare.fleet.spark.session.spark_session", taken)
        yield
