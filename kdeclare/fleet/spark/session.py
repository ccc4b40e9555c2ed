"""Start and stop a Spark session. Each session has its own JVM."""

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
from kdeclare.fleet.spark.connect import (
    CONNECT_VARIABLES,
    REMOTE_VARIABLE,
    build_remote_setting_error,
    connect_session,
    find_connect_url,
)
from kdeclare.fleet.spark.settings import (
    APP_NAME,
    FIXED_SETTINGS,
    REMOTE_SETTING,
    SECRET_KEY_PATTERN,
    build_session_defaults,
    compute_driver_memory,
    find_local_cores,
)
from kdeclare.fleet.spark.spark_errors import SparkError, translate_spark_errors
from kdeclare.java import find_java

_log = logging.getLogger(__name__)

__all__ = ["SparkConf", "SparkSession", "spark_session"]

_DEFAULT_APP_NAME = "pyspark-shell"
"""Spark's default application name."""

CheckSettings = Callable[[SparkConf], None]
"""A function that raises KdeclareError if the command cannot run with the given Spark settings."""


def accept_settings(settings: SparkConf) -> None:
    """Accept all settings."""


@contextmanager
def spark_session(
    master: str | None,
    conf: Mapping[str, str],
    *,
    log: Path | None = None,
    check_settings: CheckSettings = accept_settings,
) -> Iterator[SparkSession]:
    """Provide a Spark session for a ``with`` block, and then stop the session and its JVM.

    If ``master`` is the address of a Spark Connect server, the session runs there, without a local JVM; see
    `find_connect_url` and `connect_session`.

    Raises KdeclareError: ``java-missing``, ``java-too-old``, ``spark-running`` if this process already has a
    session, and the errors of `translate_spark_errors` for Spark's exceptions in the ``with`` block.

    master: the Spark master, or the address of a Spark Connect server; None for the master in Spark's
        settings or, if no master is set, ``local[*]``.
    conf: the user's settings by key. They override the settings in SPARK_CONF_DIR and PYSPARK_SUBMIT_ARGS,
        which override kdeclare's defaults. Tasks run with PYSPARK_PYTHON or, if it is not set, with
        the Python of this process.
    log: the file to which Spark's log is appended; None for a temporary file, which is kept only if Spark
        fails. The error then contains the path of the file.
    check_settings: a function that is called with all settings before Spark connects to the master; with
        Spark Connect, before anything except the login is sent to the server.
    """
    url = find_connect_url(master, conf, os.environ)
    if url is not None:
        with (
            set_variables(CONNECT_VARIABLES),
            connect_session(url, conf, os.environ, check_settings) as spark,
        ):
            yield spark
        return
    if SparkContext._active_spark_context is not None:
        raise KdeclareError(
            error(
                "spark-running",
                "Spark session already running",
                "This process already has a Spark session, and Spark allows only one per process.",
                hint="Stop the existing session, or run kdeclare in a separate process.",
            )
        )
    with (
        _open_log_file(log) as file,
        set_variables({**_build_python_variables(conf), REMOTE_VARIABLE: None}),  # --master takes precedence
        open_java_virtual_machine(master, conf, file),
        _restore_interrupts(),
        _silence_py4j(),
        translate_spark_errors(),  # the innermost block, because it needs the JVM
    ):
        spark = _create_session(master, conf, check_settings)
        try:
            yield spark
        finally:
            _stop_session(spark)


def _create_session(
    master: str | None, conf: Mapping[str, str], check_settings: CheckSettings
) -> SparkSession:
    settings = SparkConf()
    # spark-submit turns the progress bar on, because the resource is pyspark-shell.
    settings.set("spark.ui.showConsoleProgress", "false")
    for key, value in conf.items():
        settings.set(key, value)
    if settings.get("spark.app.name") == _DEFAULT_APP_NAME:
        settings.setAppName(APP_NAME)
    if master is not None:
        settings.setMaster(master)
    if settings.get(REMOTE_SETTING):
        raise build_remote_setting_error()
    for key, value in build_session_defaults(settings.get("spark.master") or "").items():
        settings.setIfMissing(key, value)
    for key, value in FIXED_SETTINGS.items():
        settings.set(key, value)
    check_settings(settings)
    context = SparkContext(conf=settings)
    # If the JVM dies, the failed call reports the error. The accumulator server must not print it again.
    context._accumulatorServer.handle_error = _log_accumulator_error  # type: ignore[method-assign]
    return SparkSession(context)


def _log_accumulator_error(request: object, client_address: object) -> None:
    _log.debug("Spark accumulators could not be read completely", exc_info=True)


def _stop_session(spark: SparkSession) -> None:
    try:
        with warnings.catch_warnings(action="ignore"):
            spark.stop()
    except (Py4JError, OSError):
        # The JVM died earlier, and the error was reported. The second call stops the Python side.
        _log.debug("Spark could not be stopped", exc_info=True)
        spark.sparkContext.stop()
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _build_python_variables(conf: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment variables that select the Python interpreters of the driver and of tasks."""
    task_python = conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    driver_python = (
        conf.get("spark.pyspark.driver.python") or os.environ.get("PYSPARK_DRIVER_PYTHON") or task_python
    )
    return {"PYSPARK_PYTHON": task_python, "PYSPARK_DRIVER_PYTHON": driver_python}


@contextmanager
def _restore_interrupts() -> Iterator[None]:
    """Restore the handler for Ctrl-C after a ``with`` block, because a Spark session replaces it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


@contextmanager
def _silence_py4j() -> Iterator[None]:
    """Disable the log output of py4j in a ``with`` block.

    py4j logs to the root logger, which prints to stderr if no handler is configured.
    """
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def _open_log_file(log: Path | None = None) -> Iterator[Path]:
    if log is not None:
        with _add_log_hint(log):
            yield log
        return
    handle, name = tempfile.mkstemp(prefix="kdeclare-spark-", suffix=".log")
    os.close(handle)
    file, keep = Path(name), False
    try:
        with _add_log_hint(file):
            yield file
    except SparkError:
        keep = True
        raise
    finally:
        if not keep:
            file.unlink()


@contextmanager
def _add_log_hint(log: Path) -> Iterator[None]:
    """Add the path of Spark's log to the hints of Spark errors that occur in the ``with`` block."""
    try:
        yield
    except SparkError as problem:
        log_hint = f"See Spark's log in {log}."
        diagnostics = [replace(item, hint=f"{item.hint} {log_hint}".strip()) for item in problem.diagnostics]
        raise SparkError(*diagnostics, exit_code=problem.exit_code) from problem.__cause__


_SHELL_RESOURCE = "pyspark-shell"
_FAST_STARTUP_OPTION = "-XX:TieredStopAtLevel=1"
"""A Java option that disables the optimizing compiler (C2).

In measurements, the optimizing compiler saved time only in sessions of several minutes.
"""
_END_SECONDS = 10.0


@contextmanager
def open_java_virtual_machine(
    master: str | None, conf: Mapping[str, str], log: Path
) -> Iterator[JavaGateway]:
    """Provide a JVM for a ``with`` block, and stop the JVM at the end of the block.

    Raises KdeclareError if there is no Java 17 or later, or if Spark does not start.

    master: the Spark master; None for the master in Spark's settings.
    conf: the user's settings, including settings that the JVM needs at startup, such as memory and packages.
    log: the file to which the output of the JVM is appended.
    """
    find_java()
    gateway = _launch_jvm(master, conf, log)
    configured_master = _read_configured_master(gateway)
    if master is None and find_local_cores(configured_master) is None and gateway.proc is not None:
        _stop_jvm(gateway)  # this JVM was started for a local master, so executors cannot connect to it
        gateway = _launch_jvm(configured_master, conf, log)
    try:
        # A session uses the gateway of the class SparkContext. Each session needs a new gateway.
        SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
        yield gateway
    finally:
        SparkContext._gateway = SparkContext._jvm = None
        _stop_jvm(gateway)


def _read_configured_master(gateway: JavaGateway) -> str:
    """Return the Spark master that the settings configure; ``local[*]`` if they configure none.

    The settings are --conf, PYSPARK_SUBMIT_ARGS, spark-defaults.conf and MASTER.
    """
    return str(gateway.jvm.org.apache.spark.SparkConf().get("spark.master", "local[*]"))


def _launch_jvm(master: str | None, conf: Mapping[str, str], log: Path) -> JavaGateway:
    resource = files("kdeclare.fleet.spark").joinpath("log4j2.properties")
    old_log_size = log.stat().st_size if log.exists() else 0
    with (
        as_file(resource) as log4j,
        log.open("ab") as output,
        set_variables(_build_start_variables(master, conf, log4j)),
    ):
        try:
            return launch_gateway(popen_kwargs={"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except (PySparkRuntimeError, OSError) as cause:
            raise SparkError(
                error(
                    "spark-not-started",
                    "Spark did not start",
                    f"Spark's JVM exited during startup: {_explain_exit(log, old_log_size)}.",
                    hint="Check the Spark settings in --conf, SPARK_CONF_DIR and PYSPARK_SUBMIT_ARGS.",
                )
            ) from cause


def _build_start_variables(master: str | None, conf: Mapping[str, str], log4j: Path) -> Mapping[str, str]:
    """Return the environment variables for starting a JVM.

    The user's settings take precedence over all others, and kdeclare's defaults have the lowest precedence.
    """
    # kdeclare's options come before the existing options, because the last option takes precedence.
    options = f"-Dlog4j2.configurationFile={shlex.quote(log4j.as_uri())} {_FAST_STARTUP_OPTION}"
    # A local JVM must not be reachable from outside. Besides, some machines cannot resolve their own name.
    address = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    is_local = master is None or find_local_cores(master) is not None
    return ({"SPARK_LOCAL_IP": address} if is_local else {}) | {
        "SPARK_DRIVER_MEMORY": os.environ.get("SPARK_DRIVER_MEMORY") or compute_driver_memory(),
        "SPARK_SUBMIT_OPTS": f"{options} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
        "PYSPARK_SUBMIT_ARGS": _build_submit_arguments(
            master, conf, os.environ.get("PYSPARK_SUBMIT_ARGS", _SHELL_RESOURCE)
        ),
    }


@contextmanager
def set_variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables of this process, and restore their previous values after the ``with`` block.

    values: the values by name; None to unset a variable.
    """
    previous_values = {name: os.environ.get(name) for name in values}
    _update_variables(values)
    try:
        yield
    finally:
        _update_variables(previous_values)


def _update_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _build_submit_arguments(master: str | None, conf: Mapping[str, str], submit_arguments: str) -> str:
    """Append the user's settings to the submit arguments from the environment, so that they take precedence.

    Settings that look like secrets are omitted and set later, because other users can read command lines.
    """
    environment_arguments = shlex.split(submit_arguments)
    if environment_arguments and environment_arguments[-1] == _SHELL_RESOURCE:
        environment_arguments.pop()
    settings = {key: value for key, value in conf.items() if not re.search(SECRET_KEY_PATTERN, key)}
    if master is not None:
        settings["spark.master"] = master
    pairs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return shlex.join([*environment_arguments, *pairs, _SHELL_RESOURCE])


def _stop_jvm(gateway: JavaGateway) -> None:
    """Stop a JVM by closing its standard input. Kill the JVM if it does not stop in time.

    A JVM that ``spark-submit`` started is not stopped, because ``spark-submit`` stops it.
    """
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


def _explain_exit(log: Path, old_log_size: int) -> str:
    """Return the first new line of the log that reports an error. If there is none, return the last line.

    The class name of an exception is removed from the line.

    old_log_size: the size of the log before the start of the JVM, in bytes.
    """
    new_output = log.read_bytes()[old_log_size:].decode(errors="replace")
    lines = [line.strip() for line in new_output.splitlines() if line.strip()]
    error_lines = [line for line in lines if re.search(r"Exception|\b[Ee]rror\b|Invalid|No such file", line)]
    reason = (error_lines or lines[-1:] or ["the JVM printed no output"])[0]
    return re.sub(r"^(Exception in thread \S+ )?([\w.]+(Exception|Error): )?", "", reason).rstrip(".")
