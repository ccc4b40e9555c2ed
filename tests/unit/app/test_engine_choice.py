"""Which engine begins a fleet command."""

from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet.engine_choice import choose_engine, has_spark_master
from kdeclare.app.fleet.job import Engine, FleetOptions


def choose(environ: dict[str, str] | None = None, snapshot: str | None = None, **options: Any) -> Engine:
    fleet_options = FleetOptions(**{"fleet": Path("fleet.yaml"), "out": "audits", **options})
    return choose_engine(fleet_options, environ or {}, snapshot)


def test_local_folders_are_audited_without_spark() -> None:
    assert choose() is choose(out="file:///audits") is choose(snapshot="snapshots") is Engine.LOCAL


@pytest.mark.parametrize(
    "options",
    [
        {"out": "s3a://bucket/audits"},
        {"snapshot": "s3a://bucket/snapshots"},
        {"master": "local[2]"},
        {"conf": {"spark.executor.memory": "2g"}},
        {"shared_folders": True},
        {"environ": {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}},
    ],
)
def test_anything_that_only_spark_can_use_chooses_spark(options: dict[str, Any]) -> None:
    assert choose(**options) is Engine.SPARK
    assert choose(**options, engine=Engine.LOCAL) is Engine.LOCAL  # which then reports what it cannot use


def test_requested_engine_is_used() -> None:
    assert choose(engine=Engine.SPARK) is Engine.SPARK


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("spark.master spark://host:7077\n", True),
        ("# a comment\n  spark.master=yarn\n", True),
        ("spark.remote sc://host\n", True),
        ("# spark.master yarn\nspark.executor.memory 2g\n", False),
        ("spark.masterful yes\n", False),
    ],
)
def test_master_in_settings_file_of_spark_is_found(tmp_path: Path, settings: str, expected: bool) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(settings)
    assert has_spark_master({"SPARK_HOME": str(tmp_path)}) is expected
    assert has_spark_master({"SPARK_CONF_DIR": str(tmp_path / "conf")}) is expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--master=yarn pyspark-shell", True),
        ("--conf spark.master=yarn pyspark-shell", True),
        ("--conf 'spark.app.name=a b' pyspark-shell", False),
        ("--conf 'unfinished", False),
        ("", False),
    ],
)
def test_master_in_arguments_of_spark_is_found(arguments: str, expected: bool) -> None:
    assert has_spark_master({"PYSPARK_SUBMIT_ARGS": arguments}) is expected


def test_installed_spark_without_settings_selects_no_master(tmp_path: Path) -> None:
    assert not has_spark_master({"SPARK_HOME": str(tmp_path)})
