"""Brokers before Kafka 4.1 cannot guard the replication factor (KIP-860), and are not asked to.

Two real brokers of Kafka 4.0.1. Its jars come as the sandbox's own do: resolved once with Ivy into the
user's cache (kafka-4.0.1.json there), 42 MB, and checked on every use against kafka-4.0.1.json here.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.sandbox import SandboxSettings, SandboxStatus, ivy, jars
from tests.beds import KafkaBed
from tests.conftest import free_port
from tests.kafka.test_bad_input import Project

pytestmark = pytest.mark.kafka

VERSION = "4.0.1"

DEPENDENCIES = (
    ivy.Dependency("org.apache.kafka", "kafka_2.13", VERSION),
    # the same version as in the distribution of this Kafka
    ivy.Dependency("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)

# sha256 of each jar by its path in a Maven repository
PINS = Path(__file__).with_name(f"kafka-{VERSION}.json")

NO_GUARD = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
    "the server version"
)


@pytest.fixture(scope="module")
def old_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxStatus]:
    """A sandbox of that version with two brokers."""
    settings = SandboxSettings(tmp_path_factory.mktemp("old"), brokers=2, racks=2, port=free_port(2))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(jars.HOME_VARIABLE, raising=False)
            patch.setattr(jars, "KAFKA_VERSION", VERSION)
            patch.setattr(jars, "DEPENDENCIES", DEPENDENCIES)
            patch.setattr(jars, "PINS", PINS)
            running = kafka_sandbox.start(settings, print)
        assert all(f"Kafka version: {VERSION} " in log.read_text("utf-8") for log in running.log_files)
        yield running
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.fixture
def project_and_bed(old_sandbox: SandboxStatus, tmp_path: Path) -> Iterator[tuple[Project, KafkaBed]]:
    """An empty project on those brokers, and the brokers themselves."""
    cluster = connect(old_sandbox.bootstrap, {})
    bed = KafkaBed(cluster, old_sandbox.bootstrap)
    try:
        yield Project(tmp_path, old_sandbox.bootstrap), bed
        bed.clean()
    finally:
        cluster.close()


def read_replicas(bed: KafkaBed, name: str) -> list[tuple[int, ...]]:
    """Return the replicas of each partition."""
    return [partition.replicas for partition in bed.topic(name).partitions]


def declare_move(project: Project, name: str, partition: int, to: int) -> None:
    """Replace the Reassignment of the project."""
    wanted = {"topic": name, "partition": partition, "replicas": [to]}
    project.declare(("Reassignment", "away", {"partitions": [wanted]}))


def join_lines(text: str) -> str:
    """Return the text without line breaks and indents."""
    return " ".join(text.split())


def test_guarded_reassignment_is_refused_without_request(project_and_bed: tuple[Project, KafkaBed]) -> None:
    _, bed = project_and_bed
    assert not bed.cluster.describe().rf_guard
    name = bed.create({0: (1,), 1: (2,)})
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    # with another size, and with the same one: version 0 would accept both
    refused = bed.cluster.reassign({first: (1, 2), second: (1,)}, allow_replication_factor_change=False)
    assert refused.keys() == {first, second}
    for fault in refused.values():
        assert isinstance(fault, Fault)
        assert (fault.error, fault.message, fault.kind) == (
            "UNSUPPORTED_VERSION",
            NO_GUARD,
            FaultKind.REFUSED,
        )
    assert not bed.cluster.moves()
    assert read_replicas(bed, name) == [(1,), (2,)]


def test_reassignment_is_denied_with_message_of_kip_860(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    name = bed.create({0: (1,), 1: (2,)})
    declare_move(project, name, 0, 2)
    for command in (["plan"], ["apply", "--yes"]):
        ran = project(*command)
        assert ran.code is ExitCode.DENIED, ran
        assert NO_GUARD in join_lines(ran.out), ran
    assert not bed.cluster.moves()
    assert read_replicas(bed, name) == [(1,), (2,)]


def test_reassignment_with_client_guard_is_applied(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    name = bed.create({0: (1,), 1: (2,)})
    declare_move(project, name, 0, 2)
    project.done("apply", "--yes", "--rf-guard=client")

    def moved() -> None:
        assert read_replicas(bed, name) == [(2,), (2,)]
        assert bed.topic(name).partitions[0].isr == (2,)
        assert not bed.cluster.moves([name])

    bed.eventually(moved)
    assert project.in_order()


def test_declared_replication_factor_needs_no_guard(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    name = bed.delete_at_end(project.name("grow"))
    project.topics("grow", partitions=2)
    project.done("apply", "--yes")
    assert [len(r) for r in read_replicas(bed, name)] == [1, 1]
    project.topics("grow", partitions=2, replicationFactor=2)
    project.done("apply", "--yes")

    def grown() -> None:
        assert [sorted(r) for r in read_replicas(bed, name)] == [[1, 2], [1, 2]]
        assert not bed.cluster.moves([name])

    bed.eventually(grown)
    assert project.in_order()
