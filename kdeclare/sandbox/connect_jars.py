"""The jars of Kafka Connect, pinned and cached like the brokers' own, and the plug-in made with them."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.java import MINIMUM, find_java, major_version
from kdeclare.providers.connect.client.plugin import jar as plugin
from kdeclare.sandbox import ivy
from kdeclare.sandbox.jars import (
    HOME_VARIABLE,
    KAFKA_VERSION,
    KafkaJars,
    Progress,
    Wanted,
    installed,
    pinned,
    read_pins,
    silent,
)

DEPENDENCIES = (
    ivy.Dependency("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    ivy.Dependency("org.apache.kafka", "connect-file", KAFKA_VERSION, transitive=False),
    ivy.Dependency("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)

# sha256 of each jar by file name; written by pin.py.
PINS = Path(__file__).with_name("connect_jars.json")


@dataclass(frozen=True, slots=True)
class ConnectJars(KafkaJars):
    """A Connect to run: the worker's class path, and the jar of the FileStream connectors.

    The latter belongs into a folder of ``plugin.path``: Kafka leaves it out of the class path too.
    """

    file_connectors: Path


def connect_jars(progress: Progress = silent, environment: Mapping[str, str] | None = None) -> ConnectJars:
    """Connect's jars: those of KAFKA_HOME if it is set, else the pinned ones, from the cache or downloaded.

    Raise KdeclareError ``kafka-home``, ``jars-unavailable``, ``jars-altered``, ``cache-folder`` or one
    of those of Java and Ivy.
    """
    environment = os.environ if environment is None else environment
    home = environment.get(HOME_VARIABLE)
    if home:
        there = installed(Path(home).absolute())
        return _parted(there.version, there.paths)
    what = f"Kafka Connect {KAFKA_VERSION}"
    wanted = Wanted(f"connect-{KAFKA_VERSION}", what, "37 MB", DEPENDENCIES, read_pins(PINS))
    return _parted(KAFKA_VERSION, pinned(wanted, progress, environment))


def _parted(version: str, paths: tuple[Path, ...]) -> ConnectJars:
    names = {path.name: path for path in paths}
    connectors = names.get(f"connect-file-{version}.jar")
    if connectors is None or f"connect-runtime-{version}.jar" not in names:
        raise KdeclareError(
            error(
                "kafka-home",
                "KAFKA_HOME is not a Kafka that can be used",
                f"{HOME_VARIABLE} has Kafka {version} without the jars of Kafka Connect.",
                hint=f"Correct {HOME_VARIABLE}, or unset it to have Kafka {KAFKA_VERSION} downloaded.",
            )
        )
    return ConnectJars(version, tuple(p for p in paths if p != connectors), connectors)


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
