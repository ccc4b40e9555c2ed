"""Executors in separate processes run the shipped code, and one that dies is replaced."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kdeclare.fleet.spark.tasks import build_package_zip
from tests.spark.programs import read_json_output, run_program
from tests.startup_cache import spark_java_options

pytestmark = pytest.mark.spark

ON_A_CLUSTER = """
import json, os, sys, time
from pathlib import Path
import psutil
import pyarrow as pa
from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.spark.tasks import ship_package
from kdeclare.fleet.spark.tasks import read_clusters

SCHEMA = pa.schema([(name, pa.string()) for name in ("cluster", "package", "catalogue", "executor")])
KILLED = Path("killed").absolute()
EXITED = Path("exited").absolute()

def first_time(mark):
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def executor():
    return next(p for p in psutil.Process().parents() if p.name() == "java")

def read(cluster):
    import kdeclare
    from kdeclare.providers.kafka.config.catalog import load_catalog
    from kdeclare.providers.kafka.ids import ConfigScope

    if cluster == "c3" and first_time(KILLED):
        executor().kill()
        time.sleep(60)
    if cluster == "c5" and first_time(EXITED):
        os._exit(1)
    known = str("retention.ms" in load_catalog(ConfigScope.TOPIC).keys)
    row = (cluster, kdeclare.__file__, known, str(executor().pid))
    yield pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row))], SCHEMA)

settings = {
    "spark.python.worker.reuse": "true",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": sys.argv[1],
}
with spark_session("local-cluster[2,1,1024]", settings) as spark:
    ship_package(spark)
    clusters = [f"c{number}" for number in range(8)]
    rounds = []
    for at_once in (2, 8):
        table = read_clusters(spark, clusters, read, SCHEMA, max_concurrency=at_once)
        rounds.append([row.asDict() for row in table.collect()])
        KILLED.unlink()
        EXITED.unlink()
for _ in range(600):
    mine = [p for p in psutil.process_iter(["cwd", "name"]) if (p.info["cwd"] or "").startswith(os.getcwd())]
    left = [p.pid for p in mine if p.info["name"] == "java"]
    if not left:
        break
    time.sleep(0.1)
print(json.dumps({"rounds": rounds, "left": left}))
"""


@pytest.mark.thorough
def test_tasks_run_shipped_package_and_survive_executor_loss(tmp_path: Path) -> None:
    result = read_json_output(run_program(tmp_path, ON_A_CLUSTER, None, spark_java_options()))
    for found in result["rounds"]:
        rows = sorted(found, key=lambda row: row["cluster"])
        assert [row["cluster"] for row in rows] == [f"c{number}" for number in range(8)]
        assert {row["catalogue"] for row in rows} == {"True"}
        for row in rows:
            assert row["package"].endswith("kdeclare.zip/kdeclare/__init__.py")
    assert result["left"] == []


def test_package_zip_is_complete_and_reproducible() -> None:
    package = build_package_zip()
    assert package == build_package_zip()
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        names = archive.namelist()
    catalog = "kdeclare/providers/kafka/config/catalog/topic.json"
    assert {catalog, "kdeclare/fleet/spark/log4j2.properties"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]


READS_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import kdeclare
for module in pkgutil.walk_packages(kdeclare.__path__, "kdeclare."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.ids import ConfigScope
assert all(load_catalog(scope).keys for scope in ConfigScope)
print(kdeclare.__file__)
"""


def test_all_modules_import_from_package_zip(tmp_path: Path) -> None:
    (tmp_path / "kdeclare.zip").write_bytes(build_package_zip())
    done = subprocess.run(
        [sys.executable, "-c", READS_ALL, str(tmp_path / "kdeclare.zip")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == f"{tmp_path}/kdeclare.zip/kdeclare/__init__.py"
