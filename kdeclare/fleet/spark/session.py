"""A Spark session with a JVM of its own, for as long as a block takes, and nothing left of it afterwards."""

import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.spark.problems import SparkFailure, explained
from kdeclare.fleet.spark.settings import APP_NAME, SECRET, driver_memory, local_cores, session_defaults
from kdeclare.java import find_java

_log = logging.getLogger(__name__)

__all__ = ["SparkConf", "SparkSession", "spark_session"]

_UNNAMED = "pyspark-shell"
"""What an application is called that nobody has named."""

CheckSettings = Callable[[SparkConf], None]
"""Raises KdeclareError for settings, of which ``spark.master`` is one, that a command cannot run with."""


def accept_settings(settings: SparkConf) -> None:
    """Accept all settings."""


@contextmanager
def spark_session(
    master: str | None,
    conf: Mapping[str, str],
    *,
    log: Path | None = None,
    check: CheckSettings = accept_settings,
) -> Iterator[SparkSession]:
    """A session of the block's own; afterwards its JVM has ended.

    master: None is what settings say, or ``local[*]``.
    conf: the user's settings by key. They win over those of SPARK_CONF_DIR and PYSPARK_SUBMIT_ARGS, and
    these over what kdeclare sets. Tasks run PYSPARK_PYTHON, and this very Python where it is not set.
    log: where Spark's log is appended to. None: a temporary file, which stays only if the block fails
    because of Spark; the error then names it.
    check: called with all settings before Spark connects to the master.
    Raises KdeclareError: ``java-missing``, ``java-too-old``, ``spark-running`` where this process has a
    session already, and what `explained` makes of Spark's exceptions in the block.
    """
    if SparkContext._active_spark_context is not None:
        raise KdeclareError(
            error(
                "spark-running",
                "There is a Spark session already",
                "This process has a Spark session, and Spark allows one a process.",
                hint="Stop that session first, or run kdeclare in a process of its own.",
            )
        )
    with (
        _log_file(log) as file,
        variables(_python(conf)),
        java_virtual_machine(master, conf, file),
        _interrupts_as_before(),
        _unheard_py4j(),
        explained(),  # as long as there is a JVM to be asked what it meant
    ):
        spark = _session(master, conf, check)
        try:
            yield spark
        finally:
            _stop(spark)


def _session(master: str | None, conf: Mapping[str, str], check: CheckSettings) -> SparkSession:
    settings = SparkConf()
    # spark-submit takes this for somebody's shell.
    settings.set("spark.ui.showConsoleProgress", "false")
    for key, value in conf.items():
        settings.set(key, value)
    if settings.get("spark.app.name") == _UNNAMED:
        settings.setAppName(APP_NAME)
    if master is not None:
        settings.setMaster(master)
    for key, value in session_defaults(settings.get("spark.master") or "").items():
        settings.setIfMissing(key, value)
    check(settings)
    context = SparkContext(conf=settings)
    # A JVM that dies is told once, by what was asked of it, and not on stderr as well.
    context._accumulatorServer.handle_error = _unheard  # type: ignore[method-assign]
    return SparkSession(context)


def _unheard(request: object, client_address: object) -> None:
    _log.debug("Accumulators were not read to their end", exc_info=True)


def _stop(spark: SparkSession) -> None:
    try:
        with warnings.catch_warnings(action="ignore"):
            spark.stop()
    except (Py4JError, OSError):
        # The JVM died before, which the block has noticed; Python's side lets go of it the second time.
        _log.debug("Spark was not stopped", exc_info=True)
        spark.sparkContext.stop()
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _python(conf: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that name Python for tasks."""
    given = conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    driver = conf.get("spark.pyspark.driver.python") or os.environ.get("PYSPARK_DRIVER_PYTHON") or given
    return {"PYSPARK_PYTHON": given, "PYSPARK_DRIVER_PYTHON": driver}


@contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """A session cancels its jobs on Ctrl-C, and leaves that behind when it ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _unheard_py4j() -> Iterator[None]:
    """py4j logs to the root logger, which prints what nobody has a handler for."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def _log_file(log: Path | None = None) -> Iterator[Path]:
    if log is not None:
        with _name_log(log):
            yield log
        return
    handle, name = tempfile.mkstemp(prefix="kdeclare-spark-", suffix=".log")
    os.close(handle)
    file, keep = Path(name), False
    try:
        with _name_log(file):
            yield file
    except SparkFailure:
        keep = True
        raise
    finally:
        if not keep:
            file.unlink()


@contextmanager
def _name_log(log: Path) -> Iterator[None]:
    """Errors that come of Spark tell where its log is."""
    try:
        yield
    except SparkFailure as problem:
        more = f"Spark's log is in {log}."
        told = [replace(item, hint=f"{item.hint} {more}".strip()) for item in problem.diagnostics]
        raise SparkFailure(*told, exit_code=problem.exit_code) from problem.__cause__


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
