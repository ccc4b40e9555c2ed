"""Sessions are quiet, respect the user's settings, and leave nothing behind."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.spark.session import spark_session
from tests.spark.programs import read_json_output, run_program, start_program, wait_for_program
from tests.startup_cache import spark_java_options

pytestmark = pytest.mark.spark

UNREACHABLE = """
from kdeclare.fleet.spark.session import spark_session
from kdeclare.core.diagnostics import KdeclareError
try:
    with spark_session("spark://127.0.0.1:1", {}) as spark:
        spark.range(3).count()
except KdeclareError as problem:
    print(problem.diagnostics[0].code)
"""


@pytest.fixture(scope="module", autouse=True)
def program_without_master(tmp_path_factory: pytest.TempPathFactory) -> "subprocess.Popen[str]":
    """Start a program early: Spark takes a minute to give up, and the other tests run meanwhile."""
    return start_program(tmp_path_factory.mktemp("unreachable"), UNREACHABLE)


ONE_AFTER_THE_OTHER = """
import os
import psutil
from kdeclare.fleet.spark.session import spark_session
from kdeclare.core.diagnostics import KdeclareError, error

def quiet(spark):
    spark.sparkContext._jvm.java.lang.System.err.println("a line of the JVM")
    assert spark.range(1000).repartition(3).count() == 1000
    assert spark.sparkContext.parallelize([1, 2, 3]).map(lambda n: n + 1).sum() == 9

def bug(part):
    print("a task speaks")
    raise ValueError("no such thing")

def broken(spark):
    quiet(spark)
    spark.sparkContext.parallelize([1]).map(bug).count()

def killed(spark):
    os.kill(spark.sparkContext._gateway.proc.pid, 9)
    spark.range(3).count()

def users(spark):
    quiet(spark)
    raise KdeclareError(error("a-mistake", "A mistake", hint="Correct it."))

for block in (broken, killed, users):
    try:
        with spark_session("local[2]", {}) as spark:
            java = psutil.Process(spark.sparkContext._gateway.proc.pid)
            assert java.is_running()
            block(spark)
    except KdeclareError as problem:
        (item,) = problem.diagnostics
        print(item.code, "|", item.detail, "|", item.hint)
    assert not java.is_running()
    assert psutil.Process().children(recursive=True) == []
"""


@pytest.mark.thorough
def test_sessions_are_quiet_and_leave_only_logs_of_failures(tmp_path: Path) -> None:
    done = run_program(tmp_path, ONE_AFTER_THE_OTHER)
    assert (done.returncode, done.stderr) == (0, "")
    bug, killed, users = done.stdout.splitlines()
    assert bug.startswith("internal-error | A Spark task raised an unexpected exception: ValueError: no such")
    assert killed.startswith("spark-died | ")
    assert users == "a-mistake |  | Correct it."
    logs = sorted(str(path) for path in (tmp_path / "tmp").glob("kdeclare-*"))
    named = sorted(line.split("See Spark's log in ")[1].removesuffix(".") for line in (bug, killed))
    assert logs == named
    assert "ValueError: no such thing" in Path(bug.split("log in ")[1].removesuffix(".")).read_text()
    assert list(tmp_path.glob("*[!y]")) == [tmp_path / "tmp"]


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


def test_session_uses_defaults_without_settings(spark: SparkSession) -> None:
    settings = dict(spark.sparkContext.getConf().getAll())
    assert settings["spark.app.name"] == "kdeclare"
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.ui.showConsoleProgress"] == "false"
    assert settings["spark.sql.shuffle.partitions"] == "4"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.driver.host"] in ("127.0.0.1", "localhost")
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    assert "-Xmx" in Path(f"/proc/{java}/cmdline").read_text()


@pytest.mark.thorough
def test_session_prefers_options_to_environment(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.sql.session.timeZone CET\nspark.driver.memory 600m\nspark.app.name theirs\n"
        "spark.sql.shuffle.partitions 7\nspark.ui.enabled true\nspark.ui.port 0\nspark.redaction.regex mine\n"
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
    settings = read_json_output(run_program(tmp_path, SETTINGS, environ, json.dumps(users)))
    assert settings["spark.sql.shuffle.partitions"] == "9"
    assert settings["spark.sql.session.timeZone"] == "CET"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.app.name"] == "theirs"
    assert settings["python"] == str(tmp_path / "python")
    assert "-Xmx800m" in settings["command"]
    assert settings["spark.redaction.regex"] == "mine"
    assert settings["spark.hadoop.x.secret.key"] == "s3cr3t"
    assert "s3cr3t" not in settings["command"]


MASTER = """
import json, sys
from pathlib import Path
from kdeclare.fleet.spark.session import spark_session

found = []
for master, conf in json.loads(sys.argv[1]):
    with spark_session(master, conf) as spark:
        if spark.sparkContext.master.startswith("local-cluster"):
            numbers = spark.sparkContext._jvm.java.util.ArrayList()
            numbers.extend(range(3))
            assert spark.sparkContext._jsc.parallelize(numbers).count() == 3
        java = spark.sparkContext._gateway.proc.pid
        alone = "SPARK_LOCAL_IP=127.0.0.1" in Path(f"/proc/{java}/environ").read_text()
        found.append([spark.sparkContext.master, alone])
print(json.dumps(found))
"""


def read_masters(folder: Path, environ: dict[str, str], *asked: tuple[str | None, dict[str, str]]) -> Any:
    """Return the session's master and whether it is local, for each requested master and settings."""
    return read_json_output(run_program(folder, MASTER, environ, json.dumps(asked)))


@pytest.mark.thorough
def test_session_uses_master_of_spark_settings(tmp_path: Path) -> None:
    """The command line has the highest priority, then the environment, then the file."""
    elsewhere = "local-cluster[1,1,1024]"
    executors = f"spark.executor.extraJavaOptions {spark_java_options()}"
    (tmp_path / "spark-defaults.conf").write_text(f"spark.master {elsewhere}\n{executors}\n")
    environ = {"SPARK_CONF_DIR": str(tmp_path)}
    assert read_masters(tmp_path, environ, (None, {})) == [[elsewhere, False]], "executors can connect to it"
    environ["PYSPARK_SUBMIT_ARGS"] = "--master local[3] pyspark-shell"
    found = read_masters(
        tmp_path, environ, (None, {}), (None, {"spark.master": "local[2]"}), ("local[1]", {})
    )
    assert [master for master, _ in found] == ["local[3]", "local[2]", "local[1]"]


def test_session_without_master_runs_locally(tmp_path: Path) -> None:
    assert read_masters(tmp_path, {}, (None, {})) == [["local[*]", True]]


def test_second_session_in_process_is_refused(spark: SparkSession) -> None:
    with pytest.raises(KdeclareError) as raised, spark_session("local[2]", {}):
        pass
    assert [item.code for item in raised.value.diagnostics] == ["spark-running"]
    assert spark.range(3).count() == 3


NO_JAVA = """
from kdeclare.fleet.spark.session import spark_session
from kdeclare.core.diagnostics import KdeclareError
try:
    with spark_session("local[2]", {}):
        pass
except KdeclareError as problem:
    print(problem.diagnostics[0].code, problem.diagnostics[0].hint)
"""


def test_session_without_java_reports_it(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    done = run_program(tmp_path, NO_JAVA, environ)
    assert done.stdout.startswith("java-missing Install a Java runtime, version 17")
    assert done.stderr == ""
    assert list((tmp_path / "tmp").iterdir()) == []


def test_unreachable_master_is_reported(program_without_master: "subprocess.Popen[str]") -> None:
    done = wait_for_program(program_without_master)
    assert (done.stdout, done.stderr) == ("spark-unreachable\n", "")
