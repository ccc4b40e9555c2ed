"""Real brokers with policies of their own: RecordingPolicy.java, and what it was shown."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.sandbox import SandboxSettings, SandboxStatus, broker_properties, jars, launch
from kdeclare.sandbox.settings import HOST
from tests.beds import KafkaBed
from tests.conftest import free_port
from tests.kafka.java import compile_java

CONTROLLER, ALONE = 1, 2
"""The brokers: one is the controller too, one is nothing else."""

PARTITIONS, FACTOR = 3, 2
"""What a topic gets that does not say; not what Kafka itself would give."""

DENIED, SILENT, CRASH = "denied", "silent", "crash"
"""In the name of a new topic: it is denied, is denied without a message, makes the policy crash."""

DENIED_VALUE, SILENT_VALUE, CRASH_VALUE = "777777771", "777777772", "777777773"
"""In a config value: the same. Too long to be part of a name by chance."""

Line = Mapping[str, Any]
"""One call of a policy."""

_SOURCE = Path(__file__).with_name("RecordingPolicy.java")
_CLASS = "kdeclare.test.RecordingPolicy"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{_PLAIN} required username="alice" password="wonder";',
}
"""Client properties for `Policed.login`: there everybody is ``User:alice``."""


@dataclass(frozen=True)
class PolicedBrokers:
    """Brokers that run, where RecordingPolicy is both of Kafka's policies.

    login: their addresses where clients have to say who they are; elsewhere nobody is authenticated.
    """

    sandbox: SandboxStatus
    shown: Path
    login: str

    def lines(self) -> list[Line]:
        """All calls so far, in order; those of a request are there before its answer."""
        return [json.loads(line) for line in self.shown.read_text("utf-8").splitlines()]

    @contextmanager
    def client(self) -> Iterator[KafkaBed]:
        """A client for as long as the block lasts; what it made is gone then."""
        cluster = connect(self.sandbox.bootstrap, {})
        made = KafkaBed(cluster, self.sandbox.bootstrap)
        try:
            yield made
            made.clean()
        finally:
            cluster.close()

    @contextmanager
    def record_calls(self) -> Iterator[list[Line]]:
        """The calls during the block, there at its end; without where they ran."""
        before, found = len(self.lines()), list[Line]()
        yield found
        found += [_remove_origin(line) for line in self.lines()[before:]]


def build_create_call(topic: str, configs: Mapping[str, str] | None = None, **more: Any) -> Line:
    """What a CreateTopicPolicy is shown; null where nothing is given."""
    nothing = dict.fromkeys(("numPartitions", "replicationFactor", "replicasAssignments"))
    return {"method": "create", "topic": topic, "configs": configs or {}, **nothing, **more}


def build_alter_call(name: str, configs: Mapping[str, str | None], kind: str = "TOPIC") -> Line:
    """What an AlterConfigPolicy is shown."""
    return {"method": "alter", "type": kind, "name": name, "configs": configs}


def build_topic(name: str, configs: Mapping[str, str] | None = None) -> NewTopic:
    """A topic of one partition with one replica."""
    return NewTopic(name, 1, 1, None, configs or {})


def build_single_create_call(name: str, configs: Mapping[str, str] | None = None) -> Line:
    """The creation of such a topic."""
    return build_create_call(name, configs, numPartitions=1, replicationFactor=1)


@contextmanager
def start_policed_brokers(folder: Path) -> Iterator[PolicedBrokers]:
    """A sandbox in that folder for as long as the block lasts."""
    classes, shown = folder / "classes", folder / "shown.jsonl"
    compile_java(_SOURCE, classes)
    settings = SandboxSettings(folder / "sandbox", brokers=2, racks=2, port=free_port(4))
    try:
        with pytest.MonkeyPatch.context() as patch:
            _install_policy(patch, classes, shown)
            running = kafka_sandbox.start(settings, print)
        login = ",".join(_get_login_address(settings, broker) for broker in settings.broker_ids)
        yield PolicedBrokers(running, shown, login)
    finally:
        kafka_sandbox.reset(settings.folder)


def _remove_origin(line: Line) -> Line:
    return {key: value for key, value in line.items() if key not in ("node", "thread")}


def _get_login_address(settings: SandboxSettings, broker: int) -> str:
    """The address of a listener with authentication, next to the usual ones."""
    return f"{HOST}:{settings.get_broker_port(broker + settings.brokers)}"


def _install_policy(patch: pytest.MonkeyPatch, classes: Path, shown: Path) -> None:
    """What is started from here on has the class on its class path, and is told to use it."""
    usual, kafka_jars = broker_properties.broker_properties, jars.kafka_jars

    def with_policies(settings: SandboxSettings, broker_id: int, *log_dirs: Path) -> dict[str, str]:
        found = usual(settings, broker_id, *log_dirs)
        listeners, protocols = found["listeners"], found["listener.security.protocol.map"]
        return found | {
            "listeners": f"{listeners},LOGIN://{_get_login_address(settings, broker_id)}",
            "listener.security.protocol.map": f"{protocols},LOGIN:SASL_PLAINTEXT",
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": f'{_PLAIN} required user_alice="wonder";',
            "create.topic.policy.class.name": _CLASS,
            "alter.config.policy.class.name": _CLASS,
            "kdeclare.test.shown": str(shown),
            "kdeclare.test.denied": f"{DENIED},{DENIED_VALUE}",
            "kdeclare.test.silent": f"{SILENT},{SILENT_VALUE}",
            "kdeclare.test.crash": f"{CRASH},{CRASH_VALUE}",
            "num.partitions": str(PARTITIONS),
            "default.replication.factor": str(FACTOR),
        }

    def with_class(progress: jars.Progress = jars.ignore_progress) -> jars.KafkaJars:
        found = kafka_jars(progress)
        return replace(found, paths=(*found.paths, classes))

    patch.setattr(broker_properties, "broker_properties", with_policies)
    patch.setattr(launch, "kafka_jars", with_class)
