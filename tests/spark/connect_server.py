"""A Spark Connect server on 127.0.0.1, from the jars of PySpark."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.ports import reserve_port
from tests.spark.programs import SHORT_LIVED

_START_SECONDS = 180
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings for many queries of few rows, see `tests.spark.sharing`."""


@dataclass(frozen=True)
class ConnectServer:
    """A running server.

    log: the file with its output. events: the folder of Spark's event log, as text. local: the folder for
    temporary files of the server and its tasks.
    """

    port: int
    log: Path
    events: Path
    local: Path

    @property
    def url(self) -> str:
        """The address without parameters."""
        return f"sc://127.0.0.1:{self.port}"


@contextmanager
def start_connect_server(folder: Path, settings: Mapping[str, str]) -> Iterator[ConnectServer]:
    """Start a server with two cores, and stop it afterwards. settings: of Spark, for the server."""
    server = ConnectServer(reserve_port(), folder / "server.log", folder / "events", folder / "local")
    server.events.mkdir()
    server.local.mkdir()
    all_settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.driver.memory": "1g",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{server.events}",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        **_INTERPRETED,
        **settings,
    }
    conf = folder / "spark.conf"
    conf.write_text("".join(f"{key} {value}\n" for key, value in all_settings.items()))
    line = [f"{Path(pyspark.__file__).parent}/bin/spark-submit", "--class", _CLASS, "--master", "local[2]"]
    line += ["--properties-file", str(conf), "spark-internal"]
    inherited = ("SPARK_", "PYSPARK_", "PYTHONPATH")  # tasks must find kdeclare in what the client sends
    environ = {k: v for k, v in os.environ.items() if not k.startswith(inherited)} | SHORT_LIVED
    environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(server.local)}
    environ |= {"PYSPARK_PYTHON": sys.executable}
    with server.log.open("wb") as output:
        process = subprocess.Popen(line, env=environ, stdout=output, stderr=output, cwd=folder)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while "Spark Connect server started" not in (text := server.log.read_text()):
            assert process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.1)
        yield server
    finally:
        _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
