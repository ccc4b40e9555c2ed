"""The plug-in for Connect workers, compiled here against the jars of the Connect that kdeclare runs."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.java import MINIMUM, find_java, major_version
from kdeclare.providers.connect.client.plugin import jar as plugin
from kdeclare.sandbox.connect_jars import connect_jars
from kdeclare.sandbox.jars import Progress, silent

_HINT = f"Install a JDK, version {MINIMUM} or later, and put its javac on PATH or set JAVA_HOME."


def build(out: Path, progress: Progress = silent, environment: Mapping[str, str] | None = None) -> Path:
    """Compile the plug-in into a jar in the folder ``out``, which is made, and return the jar's path.

    Raise KdeclareError ``javac-missing``, ``plugin-build``, ``plugin-folder``, or what Java and Connect's
    jars raise.
    """
    chosen = os.environ if environment is None else environment
    return plugin.build(out, lambda: find_compiler(progress, chosen), progress)


def install(plugin_path: Path, progress: Progress = silent) -> plugin.Installed:
    """Build the plug-in and put it into a folder of ``plugin.path``.

    Raise KdeclareError as ``build`` does, ``plugin-folder`` for this folder, too.
    """
    with tempfile.TemporaryDirectory() as scratch:
        return plugin.install(plugin_path.expanduser().absolute(), build(Path(scratch), progress))


def find_compiler(progress: Progress, environment: Mapping[str, str]) -> plugin.Compiler:
    """Find a ``javac``, and Connect's jars, which may be downloaded. Raise KdeclareError."""
    javac = find_javac(environment)
    jars = connect_jars(progress, environment)
    return plugin.Compiler(javac, jars.classpath, jars.version)


def find_javac(environment: Mapping[str, str], java: str | None = None) -> str:
    """The path of a ``javac`` of version 17 or later. Raise KdeclareError ``javac-missing``.

    Beside the ``java`` that is found for Kafka, else on PATH: a runtime alone has none.
    java: that one, where it has been found already.
    """
    beside = Path(java or find_java(environment)).resolve().with_name("javac")
    javac = str(beside) if os.access(beside, os.X_OK) else shutil.which("javac", path=environment.get("PATH"))
    if javac is None:
        raise _no_compiler("There is no javac beside java or on PATH: this is a Java runtime, not a JDK.")
    try:
        done = subprocess.run([javac, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _no_compiler(f"{javac} does not run ({problem}).") from problem
    found = re.search(r"javac (\S+)", done.stdout + done.stderr)
    version = major_version(f'version "{found.group(1)}"') if found else None
    if version is None or version < MINIMUM:
        raise _no_compiler(f"{javac} is of version {version or 'unknown'}.")
    return javac


def _no_compiler(detail: str) -> KdeclareError:
    return KdeclareError(error("javac-missing", "A Java compiler was not found", detail, hint=_HINT))
