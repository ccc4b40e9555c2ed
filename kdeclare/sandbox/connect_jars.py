"""Find the jars of Kafka Connect, and build kdeclare's plug-in for Connect workers.

The jars are pinned and cached in the same way as the jars of brokers.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.java import MINIMUM_VERSION, find_java, parse_major_version
from kdeclare.providers.connect.client.plugin import jar as plugin
from kdeclare.sandbox import ivy
from kdeclare.sandbox.jars import (
    HOME_VARIABLE,
    KAFKA_VERSION,
    KafkaJars,
    PinnedJars,
    Progress,
    get_installed_kafka,
    ignore_progress,
    read_pins,
    resolve_pinned_jars,
)

DEPENDENCIES = (
    ivy.Dependency("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    ivy.Dependency("org.apache.kafka", "connect-file", KAFKA_VERSION, transitive=False),
    ivy.Dependency("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)

# The file with the SHA-256 of each jar by file name; written by pin.py.
PINS = Path(__file__).with_name("connect_jars.json")


@dataclass(frozen=True, slots=True)
class ConnectJars(KafkaJars):
    """The jars of Kafka Connect.

    paths: the jars on the class path of a worker. file_connectors: the jar of the FileStream connectors,
    which must be in a folder of ``plugin.path`` instead of on the class path.
    """

    file_connectors: Path


def resolve_connect_jars(
    progress: Progress = ignore_progress, environment: Mapping[str, str] | None = None
) -> ConnectJars:
    """Return the jars of Kafka Connect.

    These are the jars in KAFKA_HOME. If KAFKA_HOME is not set, they are the pinned jars, which are downloaded
    if the cache does not contain them.

    Raises KdeclareError ``kafka-home``, ``jars-unavailable``, ``jars-altered``, ``cache-folder``, or an error
    of Java or Ivy.
    """
    environment = os.environ if environment is None else environment
    home = environment.get(HOME_VARIABLE)
    if home:
        installed_kafka = get_installed_kafka(Path(home).absolute())
        return _split_connectors(installed_kafka.version, installed_kafka.paths)
    label = f"Kafka Connect {KAFKA_VERSION}"
    pinned_jars = PinnedJars(f"connect-{KAFKA_VERSION}", label, "37 MB", DEPENDENCIES, read_pins(PINS))
    return _split_connectors(KAFKA_VERSION, resolve_pinned_jars(pinned_jars, progress, environment))


def _split_connectors(version: str, paths: tuple[Path, ...]) -> ConnectJars:
    paths_by_name = {path.name: path for path in paths}
    connectors = paths_by_name.get(f"connect-file-{version}.jar")
    if connectors is None or f"connect-runtime-{version}.jar" not in paths_by_name:
        raise KdeclareError(
            error(
                "kafka-home",
                "KAFKA_HOME cannot be used",
                f"Kafka {version} in {HOME_VARIABLE} does not include the jars of Kafka Connect.",
                hint=f"Set {HOME_VARIABLE} to a complete Kafka installation, or unset it to download Kafka "
                f"{KAFKA_VERSION}.",
            )
        )
    return ConnectJars(version, tuple(p for p in paths if p != connectors), connectors)


_HINT = f"Install a JDK, version {MINIMUM_VERSION} or later, and put its javac on PATH or set JAVA_HOME."


def build(
    out: Path, progress: Progress = ignore_progress, environment: Mapping[str, str] | None = None
) -> Path:
    """Write the plug-in's jar to the folder ``out``, and return the path of the jar.

    The folder is created if it does not exist. The plug-in is compiled unless kdeclare was installed from a
    released package, which contains the compiled plug-in.

    Raises KdeclareError ``javac-missing``, ``plugin-build``, ``plugin-folder``, or an error of Java or
    Connect's jars.
    """
    variables = os.environ if environment is None else environment
    return plugin.build(out, lambda: find_compiler(progress, variables), progress)


def install(plugin_path: Path, progress: Progress = ignore_progress) -> plugin.InstalledPlugin:
    """Build the plug-in and copy the jar into ``plugin_path``, a folder of Connect's ``plugin.path``.

    Raises the errors of `build`, and KdeclareError ``plugin-folder`` if the folder cannot be used.
    """
    with tempfile.TemporaryDirectory() as scratch:
        return plugin.install(plugin_path.expanduser().absolute(), build(Path(scratch), progress))


def find_compiler(progress: Progress, environment: Mapping[str, str]) -> plugin.Compiler:
    """Find ``javac`` and the jars of Connect. Download the jars if necessary. Raises KdeclareError."""
    javac = find_javac(environment)
    jars = resolve_connect_jars(progress, environment)
    return plugin.Compiler(javac, jars.classpath, jars.version)


def find_javac(environment: Mapping[str, str], java: str | None = None) -> str:
    """Return the path of ``javac``, version 17 or later. Raises KdeclareError ``javac-missing``.

    Searches the folder of the ``java`` that Kafka uses, and then PATH. A Java runtime, unlike a JDK, does not
    contain ``javac``. java: the path of the ``java`` that Kafka uses; None to search for it.
    """
    adjacent_javac = Path(java or find_java(environment)).resolve().with_name("javac")
    javac = (
        str(adjacent_javac)
        if os.access(adjacent_javac, os.X_OK)
        else shutil.which("javac", path=environment.get("PATH"))
    )
    if javac is None:
        raise _build_compiler_error(
            "There is no javac next to java or on PATH. The installed Java is a runtime, not a JDK."
        )
    try:
        completed = subprocess.run(
            [javac, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _build_compiler_error(f"{javac} could not be run ({problem}).") from problem
    match = re.search(r"javac (\S+)", completed.stdout + completed.stderr)
    version = parse_major_version(f'version "{match.group(1)}"') if match else None
    if version is None or version < MINIMUM_VERSION:
        raise _build_compiler_error(
            f"{javac} has version {version or 'unknown'}. Version {MINIMUM_VERSION} or later is required."
        )
    return javac


def _build_compiler_error(detail: str) -> KdeclareError:
    return KdeclareError(error("javac-missing", "Java compiler not found", detail, hint=_HINT))
