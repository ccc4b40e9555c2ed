"""Find a Java installation for Kafka and Spark."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.child_environ import build_child_environ

MINIMUM_VERSION = 17

_HINT = f"Install a Java runtime, version {MINIMUM_VERSION} or later, and put it on PATH or set JAVA_HOME."


@dataclass(frozen=True, slots=True)
class Java:
    """The path of a ``java`` executable, and its major version."""

    path: str
    version: int


def find_java(environment: Mapping[str, str] | None = None) -> str:
    """Return the path of a ``java`` executable (Java 17 or later).

    If JAVA_HOME is set, this is the executable in its subfolder ``bin``; otherwise, the one on PATH.

    Raises KdeclareError ``java-missing`` or ``java-too-old``.
    """
    return get_installed_java(environment).path


def get_installed_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the ``java`` executable that `find_java` finds, with its version. Runs ``java -version``.

    Raises the same errors as `find_java`.
    """
    environment = os.environ if environment is None else environment
    java = _find_candidate(environment)
    version = _read_version(java)
    if version < MINIMUM_VERSION:
        raise KdeclareError(
            error(
                "java-too-old",
                "Java is too old",
                f"Kafka requires Java {MINIMUM_VERSION} or later, but {java} is Java {version}.",
                hint=_HINT,
            )
        )
    return Java(java, version)


def parse_major_version(text: str) -> int | None:
    """Return the major version from the output of ``java -version``, or None. ``1.8.0_402`` is version 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _find_candidate(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if os.access(java, os.X_OK):
            return str(java)
        raise _build_missing_error(f"JAVA_HOME is {home}, which has no executable bin/java.")
    path = shutil.which("java", path=environment.get("PATH"))
    if path is None:
        raise _build_missing_error("There is no java on PATH, and JAVA_HOME is not set.")
    return path


def _read_version(java: str) -> int:
    try:
        # A stub that only offers to install Java also responds, but prints no version.
        process = subprocess.run(
            [java, "-version"],
            env=build_child_environ(os.environ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _build_missing_error(f"{java} could not be run ({problem}).") from problem
    version = parse_major_version(process.stderr + process.stdout)
    if process.returncode != 0 or version is None:
        raise _build_missing_error(f"{java} does not report its version.")
    return version


def _build_missing_error(detail: str) -> KdeclareError:
    return KdeclareError(error("java-missing", "Java was not found", detail, hint=_HINT))
