"""Real brokers with tiered storage: Kafka's LocalTieredStorage keeps remote segments in a folder.

It is part of the jar with Kafka's own tests of the module ``storage``. That jar is downloaded once into the
user's cache, and checked on every use, as the jars of the sandbox are.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.sandbox import SandboxSettings, SandboxStatus, jars, launch
from kdeclare.sandbox.ivy import Dependency
from tests.conftest import free_port
from tests.kafka.random_topics import shorten_intervals

_JAR = Dependency(
    "org.apache.kafka", "kafka-storage", jars.KAFKA_VERSION, transitive=False, classifier="test"
)
# the SHA-256 of the jar, by its path in a Maven repository
_JAR_PATH = f"org/apache/kafka/kafka-storage/{jars.KAFKA_VERSION}/kafka-storage-{jars.KAFKA_VERSION}-test.jar"
_PINS = {_JAR_PATH: "f3236936854c13815ffaa7f35a3f2d6861c125616cba5395b538b8680dded886"}
_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
_LISTENER = "PLAINTEXT"


@dataclass(frozen=True)
class TieredBrokers:
    """One broker that runs. remote: the folder of the remote segments."""

    sandbox: SandboxStatus
    remote: Path

    def list_segments(self, topic: str) -> list[Path]:
        """Return the remote segments of a topic."""
        return sorted(self.remote.glob(f"**/{topic}-*/*.log"))


@contextmanager
def start_tiered_brokers(folder: Path) -> Iterator[TieredBrokers]:
    """Start a broker that copies, deletes and compacts segments every second."""
    remote = folder / "remote"
    settings = SandboxSettings(folder / "sandbox", brokers=1, racks=1, port=free_port(1))
    tiered = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.metadata.manager.listener.name": _LISTENER,
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rsm.config.dir": str(remote),
        "remote.log.manager.task.interval.ms": "500",
    }
    try:
        with shorten_intervals(tiered), pytest.MonkeyPatch.context() as patch:
            _add_jar(patch)
            yield TieredBrokers(kafka_sandbox.start(settings, print), remote)
    finally:
        kafka_sandbox.reset(settings.folder)


def _add_jar(patch: pytest.MonkeyPatch) -> None:
    """Add the jar to the class path of brokers that start from now on."""
    usual = jars.kafka_jars

    def with_storage(progress: jars.Progress = jars.ignore_progress) -> jars.KafkaJars:
        found = usual(progress)
        pinned = jars.PinnedJars(
            f"storage-test-{jars.KAFKA_VERSION}", "tiered storage", "1 MB", (_JAR,), _PINS
        )
        return replace(found, paths=(*found.paths, *jars.resolve_pinned_jars(pinned, progress, os.environ)))

    patch.setattr(launch, "kafka_jars", with_storage)
