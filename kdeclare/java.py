"""Finding a Java that Kafka and Spark run on."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass

MINIMUM = 17

_HINT = f"Install a Java runtime, version {MINIMUM} or later, and put it on PATH or set JAVA_HOME."


@dataclass(frozen=True, slots=True)
class Java:
    """The path of a ``java``, and its major version."""

    path: str
    version: int


def find_java(environment: Mapping[str, str] | None = None) -> str:
    """The path of a ``java`` of version 17 or later, from JAVA_HOME, else from PATH.

    Raise KdeclareError ``java-missing`` or ``java-too-old``.
    """
    return installed_java(environment).path


def installed_java(environment: Mapping[str, str] | None = None) -> Java:
    """That ``java`` with its version: asking takes a Java that starts. Raises as ``find_java``."""
    environment = os.environ if environment is None else environment
    java = _candidate(environment)
    version = _version_of(java)
    if version < MINIMUM:
        raise KdeclareError(
            error(
                "java-too-old",
                "Java is too old",
                f"Kafka needs Java {MINIMUM} or later, and {java} is Java {version}.",
                hint=_HINT,
            )
        )
    return Java(java, version)


def major_version(text: str) -> int | None:
    """The major version in what ``java -version`` prints (``"1.8.0_402"`` is 8), or None."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def _candidate(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if os.access(java, os.X_OK):
            return str(java)
        raise _missing(f"Java was not found: JAVA_HOME is {home}, which has no bin/java.")
    found = shutil.which("java", path=environment.get("PATH"))
    if found is None:
        raise _missing("Java was not found: there is no java on PATH and JAVA_HOME is not set.")
    return found


def _version_of(java: str) -> int:
    try:
        # A stub that only offers to install Java answers too, but names no version.
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _missing(f"Java was not found: {java} does not run ({problem}).") from problem
    version = major_version(done.stderr + done.stdout)
    if done.returncode != 0 or version is None:
        raise _missing(f"Java was not found: {java} does not say which version it is.")
    return version


def _missing(detail: str) -> KdeclareError:
    return KdeclareError(error("java-missing", "Java was not found", detail, hint=_HINT))
