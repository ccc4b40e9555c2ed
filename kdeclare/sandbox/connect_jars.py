"""The jars of Kafka Connect, pinned and cached like the brokers' own."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
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
