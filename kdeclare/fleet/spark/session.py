"""A Spark session for as long as a block takes, and nothing left of it afterwards."""

import logging
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.spark.defaults import APP_NAME, session_defaults
from kdeclare.fleet.spark.launching import java_virtual_machine, variables
from kdeclare.fleet.spark.problems import SparkFailure, explained

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
        with _named(log):
            yield log
        return
    handle, name = tempfile.mkstemp(prefix="kdeclare-spark-", suffix=".log")
    os.close(handle)
    file, keep = Path(name), False
    try:
        with _named(file):
            yield file
    except SparkFailure:
        keep = True
        raise
    finally:
        if not keep:
            file.unlink()


@contextmanager
def _named(log: Path) -> Iterator[None]:
    """Errors that come of Spark tell where its log is."""
    try:
        yield
    except SparkFailure as problem:
        more = f"Spark's log is in {log}."
        told = [replace(item, hint=f"{item.hint} {more}".strip()) for item in problem.diagnostics]
        raise SparkFailure(*told, exit_code=problem.exit_code) from problem.__cause__
