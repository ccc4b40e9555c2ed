"""Sessions: quiet, set as the user wants, and gone afterwards."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kdeclare.fleet.spark.session import spark_session
from kdeclare.model.diagnostics import KdeclareError
from tests.spark.programs import run_program, told

pytestmark = pytest.mark.spark

QUIET = """
import psutil
from kdeclare.fleet.spark.session import spark_session

for _ in range(2):
    with spark_session("local[2]", {}) as spark:
        java = psutil.Process(spark.sparkContext._gateway.proc.pid)
        assert java.is_running()
        spark.sparkContext._jvm.java.lang.System.err.println("a line of the JVM")
        assert spark.range(1000).repartition(3).count() == 1000
        assert spark.sparkContext.parallelize([1, 2, 3]).map(lambda n: n + 1).sum() == 9
    assert not java.is_running()
    assert psutil.Process().children(recursive=True) == []
"""


def test_a_session_is_quiet_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run_program(tmp_path, QUIET)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "tmp").glob("kdeclare-*")) == []
    assert list(tmp_path.glob("*[!y]")) == [tmp_path / "tmp"]


BROKEN = """
import os, sys
from kdeclare.fleet.spark.session import spark_session
from kdeclare.model.diagnostics import KdeclareError, error
import psutil

def bug(part):
    print("a task speaks")
    raise ValueError("no such thing")

def broken(spark):
    spark.sparkContext.parallelize([1]).map(bug).count()

def killed(spark):
    os.kill(spark.sparkContext._gateway.proc.pid, 9)
    spark.range(3).count()

def users(spark):
    raise KdeclareError(error("a-mistake", "A mistake", hint="Correct it."))

for block in (broken, killed, users):
    try:
        with spark_session("local[2]", {}) as spark:
            block(spark)
    except KdeclareError as problem:
        (item,) = problem.diagnostics
        print(item.code, "|", item.detail, "|", item.hint)
assert psutil.Process().children(recursive=True) == []
"""


def test_what_fails_names_spark_s_log(tmp_path: Path) -> None:
    done = run_program(tmp_path, BROKEN)
    assert (done.returncode, done.stderr) == (0, "")
    bug, killed, users = done.stdout.splitlines()
    assert bug.startswith("internal-error | This should not have happened: a task raised ValueError: no such")
    assert killed.startswith("spark-died | ")
    assert users == "a-mistake |  | Correct it."
    logs = sorted(str(path) for path in (tmp_path / "tmp").glob("kdeclare-spark-*.log"))
    named = sorted(line.split("Spark's log is in ")[1].removesuffix(".") for line in (bug, killed))
    assert logs == named
    assert "ValueError: no such thing" in Path(bug.split("log is in ")[1].removesuffix(".")).read_text()


SETTINGS = """
import json, os, sys
from pathlib import Path
from kdeclare.fleet.spark.session import spark_session

with spark_session("local[2]", json.loads(sys.argv[1])) as spark:
    settings = dict(spark.sparkContext.getConf().getAll())
    settings["python"] = spark.sparkContext.pythonExec
    java = spark.sparkContext._gateway.proc.pid
    settings["command"] = Path(f"/proc/{java}/cmdline").read_text().replace(chr(0), " ")
assert "PYSPARK_PYTHON" not in os.environ or os.environ["PYSPARK_PYTHON"] == settings["python"]
print(json.dumps(settings))
"""


def test_defaults_hold_where_nobody_says_otherwise(tmp_path: Path) -> None:
    settings = told(run_program(tmp_path, SETTINGS, {}, "{}"))
    assert settings["spark.app.name"] == "kdeclare"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.ui.showConsoleProgress"] == "false"
    assert settings["spark.sql.shuffle.partitions"] == "4"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.driver.host"] in ("127.0.0.1", "localhost")
    assert "-Xmx" in settings["command"]


def test_the_user_comes_first_then_the_environment(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.sql.session.timeZone CET\nspark.driver.memory 600m\nspark.app.name theirs\n"
        "spark.sql.shuffle.partitions 7\nspark.ui.enabled true\nspark.ui.port 0\n"
    )
    environ = {
        "SPARK_CONF_DIR": str(tmp_path),
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 700m --conf spark.sql.shuffle.partitions=8 pyspark-shell",
        "PYSPARK_PYTHON": str(tmp_path / "python"),
    }
    (tmp_path / "python").symlink_to("/usr/bin/false")
    users = {
        "spark.sql.shuffle.partitions": "9",
        "spark.driver.memory": "800m",
        "spark.hadoop.x.secret.key": "s3cr3t",
    }
    settings = told(run_program(tmp_path, SETTINGS, environ, json.dumps(users)))
    assert settings["spark.sql.shuffle.partitions"] == "9"
    assert settings["spark.sql.session.timeZone"] == "CET"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.app.name"] == "theirs"
    assert settings["python"] == str(tmp_path / "python")
    assert "-Xmx800m" in settings["command"]
    assert settings["spark.hadoop.x.secret.key"] == "s3cr3t"
    assert "s3cr3t" not in settings["command"]


def test_there_is_one_session_a_process(spark: SparkSession) -> None:
    with pytest.raises(KdeclareError) as raised, spark_session("local[2]", {}):
        pass
    assert [item.code for item in raised.value.diagnostics] == ["spark-running"]
    assert spark.range(3).count() == 3


NO_JAVA = """
from kdeclare.fleet.spark.session import spark_session
from kdeclare.model.diagnostics import KdeclareError
try:
    with spark_session("local[2]", {}):
        pass
except KdeclareError as problem:
    print(problem.diagnostics[0].code, problem.diagnostics[0].hint)
"""


def test_without_java_it_is_said_what_is_needed(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    done = run_program(tmp_path, NO_JAVA, environ)
    assert done.stdout.startswith("java-missing Install a Java runtime, version 17")
    assert done.stderr == ""
    assert list((tmp_path / "tmp").iterdir()) == []
