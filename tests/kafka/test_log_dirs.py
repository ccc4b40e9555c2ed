"""Brokers with several log directories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import LogDir, NewTopic
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.beds import all_created
from tests.conftest import free_port
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

AT = TopicPartition("moved", 0)


@pytest.fixture(scope="module")
def two_dirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxStatus]:
    """Two brokers with two log directories each: one formatted by Kafka's tool, one after its model."""
    settings = SandboxSettings(tmp_path_factory.mktemp("dirs"), 2, 1, free_port(2), log_dirs=2)
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.fixture(scope="module")
def kafka(two_dirs: SandboxStatus) -> Iterator[KafkaCluster]:
    cluster = connect(two_dirs.bootstrap, {})
    try:
        yield cluster
    finally:
        cluster.close()


def create_topic(kafka: KafkaCluster, name: str, *replicas: int) -> None:
    """A topic with one partition, and the answer of brokers about it."""
    assert all_created(kafka.create_topics([NewTopic(name, None, None, {0: replicas}, {})]))


def list_paths(kafka: KafkaCluster, broker: int) -> list[str]:
    """Return the log directories of a broker."""
    return [found.path for found in kafka.log_dirs([])[broker]]


def find_log_dir(kafka: KafkaCluster, at: TopicPartition, broker: int) -> LogDir | None:
    """Return the directory of a replica; None if it is in none, or is moving to another."""
    dirs = kafka.log_dirs([at.topic])[broker]
    if any(found.arriving for found in dirs):
        return None
    return next((found for found in dirs if at in found.sizes), None)


def wait_for_log_dir(kafka: KafkaCluster, at: TopicPartition, broker: int) -> LogDir:
    """Return the directory of a replica, once it is in one and not moving to another."""
    return wait_for(lambda: find_log_dir(kafka, at, broker), 90)


def wait_for_move_error(kafka: KafkaCluster, at: TopicPartition, broker: int, path: str) -> str:
    """Return the error that a broker returns for a move, once it knows the topic.

    A broker without replicas of a new topic can learn of it after the creation is done.
    """

    def find_error() -> str | None:
        fault = kafka.move_log_dirs({(at, broker): path})[at, broker]
        return None if fault is None or fault.error == "UNKNOWN_TOPIC_OR_PARTITION" else fault.error

    return wait_for(find_error, 90)


def test_replica_moves_between_log_directories(kafka: KafkaCluster, two_dirs: SandboxStatus) -> None:
    from kafka import KafkaProducer

    create_topic(kafka, AT.topic, 1)
    producer = KafkaProducer(bootstrap_servers=two_dirs.bootstrap)
    for _ in range(50):
        producer.send(AT.topic, b"x" * 1000, partition=0)
    producer.flush()
    producer.close()
    before = wait_for_log_dir(kafka, AT, 1)
    assert before.sizes[AT] > 50_000
    (other,) = set(list_paths(kafka, 1)) - {before.path}
    assert kafka.move_log_dirs({(AT, 1): other}) == {(AT, 1): None}

    wait_for(lambda: wait_for_log_dir(kafka, AT, 1).path == other, 90)
    assert wait_for_log_dir(kafka, AT, 1).sizes[AT] == before.sizes[AT]


@pytest.mark.parametrize("chosen", [0, 1])
def test_broker_remembers_directory_for_future_replica(kafka: KafkaCluster, chosen: int) -> None:
    at = TopicPartition(f"to-come-{chosen}", 0)
    create_topic(kafka, at.topic, 1)
    path = list_paths(kafka, 2)[chosen]
    assert wait_for_move_error(kafka, at, 2, path) == "REPLICA_NOT_AVAILABLE"
    assert kafka.reassign({at: (1, 2)}, allow_replication_factor_change=True) == {at: None}
    assert wait_for_log_dir(kafka, at, 2).path == path


@pytest.mark.parametrize("chosen", [0, 1])
def test_broker_remembers_directory_for_future_topic(kafka: KafkaCluster, chosen: int) -> None:
    at = TopicPartition(f"new-{chosen}", 0)
    path = list_paths(kafka, 1)[chosen]
    fault = kafka.move_log_dirs({(at, 1): path})[at, 1]
    assert fault is not None
    assert fault.error == "UNKNOWN_TOPIC_OR_PARTITION"
    create_topic(kafka, at.topic, 1)
    assert wait_for_log_dir(kafka, at, 1).path == path


def test_brokers_have_separate_log_directories(two_dirs: SandboxStatus) -> None:
    found = sorted(Path(two_dirs.folder).glob("brokers/*/data*/meta.properties"))
    assert len(found) == 4
    ids = {
        line for path in found for line in path.read_text("latin-1").splitlines() if "directory.id" in line
    }
    assert len(ids) == 4
