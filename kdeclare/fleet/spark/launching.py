"""Starting and ending the JVM that Spark runs in, without a word of it on this command's streams."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path

from py4j.java_gateway import JavaGateway
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from kdeclare.core.diagnostics import error
from kdeclare.fleet.spark.defaults import SECRET, driver_memory, local_cores
from kdeclare.fleet.spark.problems import SparkFailure
from kdeclare.java import find_java

_SHELL = "pyspark-shell"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone: what the other one takes its time for pays off after minutes; measured."""
_END_SECONDS = 10.0


@contextmanager
def java_virtual_machine(master: str | None, conf: Mapping[str, str], log: Path) -> Iterator[JavaGateway]:
    """A JVM for the block; afterwards it has ended. What it prints goes to the end of ``log``.

    master: None is what Spark's own settings say. conf: what its own start depends on is taken from here
    (memory, packages).
    Raises KdeclareError where there is no Java 17, or where Spark does not start.
    """
    find_java()
    gateway = _launch(master, conf, log)
    stated = _stated_master(gateway)
    if master is None and local_cores(stated) is None and gateway.proc is not None:
        _end(gateway)  # it was begun as one that nobody else is to connect to
        gateway = _launch(stated, conf, log)
    try:
        # A session takes the gateway that the class holds; a later one needs a new one.
        SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
        yield gateway
    finally:
        SparkContext._gateway = SparkContext._jvm = None
        _end(gateway)


def _stated_master(gateway: JavaGateway) -> str:
    """What --conf, PYSPARK_SUBMIT_ARGS, spark-defaults.conf and MASTER come to; of nothing: ``local[*]``."""
    return str(gateway.jvm.org.apache.spark.SparkConf().get("spark.master", "local[*]"))


def _launch(master: str | None, conf: Mapping[str, str], log: Path) -> JavaGateway:
    resource = files("kdeclare.fleet.spark").joinpath("log4j2.properties")
    before = log.stat().st_size if log.exists() else 0
    with as_file(resource) as log4j, log.open("ab") as output, variables(_how_to_start(master, conf, log4j)):
        try:
            return launch_gateway(popen_kwargs={"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except (PySparkRuntimeError, OSError) as cause:
            raise SparkFailure(
                error(
                    "spark-not-started",
                    "Spark did not start",
                    f"Spark's JVM ended before it was ready: {_why(log, before)}.",
                    hint="Check the settings of --conf, SPARK_CONF_DIR and PYSPARK_SUBMIT_ARGS.",
                )
            ) from cause


def _how_to_start(master: str | None, conf: Mapping[str, str], log4j: Path) -> Mapping[str, str]:
    """The variables by which a JVM is told how to start: the weakest word of all, and the strongest."""
    # Before what is there: the last one wins.
    options = f"-Dlog4j2.configurationFile={shlex.quote(log4j.as_uri())} {_SHORT_LIVED}"
    # In one process nobody else is to connect, and a machine need not know its own name.
    address = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    alone = master is None or local_cores(master) is not None
    return ({"SPARK_LOCAL_IP": address} if alone else {}) | {
        "SPARK_DRIVER_MEMORY": os.environ.get("SPARK_DRIVER_MEMORY") or driver_memory(),
        "SPARK_SUBMIT_OPTS": f"{options} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
        "PYSPARK_SUBMIT_ARGS": _arguments(master, conf, os.environ.get("PYSPARK_SUBMIT_ARGS", _SHELL)),
    }


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """This process's environment with ``values`` in it, for the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _arguments(master: str | None, conf: Mapping[str, str], given: str) -> str:
    """The user's own settings behind those of the environment, so that they win.

    Others can read a command line: what looks like a secret is set later, without one.
    """
    first = shlex.split(given)
    if first and first[-1] == _SHELL:
        first.pop()
    settings = {key: value for key, value in conf.items() if not re.search(SECRET, key)}
    if master is not None:
        settings["spark.master"] = master
    pairs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return shlex.join([*first, *pairs, _SHELL])


def _end(gateway: JavaGateway) -> None:
    """It ends by itself when its stdin does; one that hangs is killed. `spark-submit`'s own is left to it."""
    process: subprocess.Popen[bytes] | None = gateway.proc
    gateway.shutdown()
    if process is None:
        return
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _why(log: Path, before: int) -> str:
    """The first new line that speaks of an error, without the exception's class; else the last one.

    before: bytes of the log that are older.
    """
    said = log.read_bytes()[before:].decode(errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"Exception|\b[Ee]rror\b|Invalid|No such file", line)]
    chosen = (telling or lines[-1:] or ["it said nothing"])[0]
    return re.sub(r"^(Exception in thread \S+ )?([\w.]+(Exception|Error): )?", "", chosen).rstrip(".")
