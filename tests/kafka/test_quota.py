"""A strict controller mutation quota (KIP-599) on a real broker: kdeclare waits for it and reports it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import Retry, RetryPolicy
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.client.cluster import RetryingCluster
from kdeclare.providers.kafka.port import NewPartitions, NewTopic
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.test_bad_input import Project

pytestmark = pytest.mark.kafka

RATE = 2.0


def set_quota(cluster: KafkaCluster, rate: float | None) -> None:
    """Set the mutation rate of client ids without a rate of their own; None removes the quota."""
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=None)],
                ops=[entry.OpData(key="controller_mutation_rate", value=rate or 0.0, remove=rate is None)],
            )
        ],
        validate_only=False,
    )
    codes = cluster._wire.send_one(request, lambda response: [item.error_code for item in response.entries])
    assert codes == [0]
    time.sleep(1)  # until brokers apply it


@pytest.fixture
def quota_bed(kafka_bed: KafkaBed, sandbox: SandboxStatus) -> Iterator[KafkaBed]:
    """Brokers with the quota, whose burst is exhausted."""
    own = connect(sandbox.bootstrap, {})
    set_quota(own, RATE)
    own.close()
    try:
        burst = [NewTopic(kafka_bed.name(), 1, 1, None, {}) for _ in range(30)]
        kafka_bed.cluster.create_topics(burst)
        yield kafka_bed
    finally:
        other = connect(sandbox.bootstrap, {})
        set_quota(other, None)
        other.close()


def test_creations_over_quota_are_refused_with_wait_time(quota_bed: KafkaBed) -> None:
    cluster, started = quota_bed.cluster, time.monotonic()
    new = [NewTopic(quota_bed.name(), 1, 1, None, {}) for _ in range(20)]
    faults = [fault for fault in cluster.create_topics(new).values() if isinstance(fault, Fault)]
    assert time.monotonic() - started < 10
    assert len(faults) >= 15
    assert {(fault.error, fault.kind) for fault in faults} == {
        ("THROTTLING_QUOTA_EXCEEDED", FaultKind.RETRIABLE)
    }
    assert all(0 < fault.retry_after_s < 10 for fault in faults)
    assert "controller_mutation_rate" in faults[0].message
    name = next(iter(cluster.topics()))
    for answer in (
        cluster.create_partitions([NewPartitions(name, 40)], validate_only=True),
        cluster.delete_topics({quota_bed.name(): None for _ in range(9)}),
    ):
        assert {fault.error for fault in answer.values() if isinstance(fault, Fault)} <= {
            "THROTTLING_QUOTA_EXCEEDED",
            "UNKNOWN_TOPIC_OR_PARTITION",
        }


def test_creations_over_quota_are_retried_until_done(quota_bed: KafkaBed) -> None:
    retries: list[Retry] = []
    patient = RetryingCluster(quota_bed.cluster, RetryPolicy(on_retry=retries.append))
    new = [NewTopic(quota_bed.name(), 1, 1, None, {}) for _ in range(20)]
    assert not any(isinstance(answer, Fault) for answer in patient.create_topics(new).values())
    assert len(retries) > 6  # more than the limit of failed attempts


def test_apply_waits_for_quota_and_reports_it(
    quota_bed: KafkaBed, sandbox: SandboxStatus, tmp_path: Path
) -> None:
    project = Project(tmp_path, sandbox.bootstrap)
    names = [f"quota-{i}" for i in range(8)]
    for name in names:
        quota_bed.delete_at_end(project.name(name))
    project.topics(*names)
    ran = project("apply", "--yes", "--no-preflight")
    assert ran.code == 0, ran
    assert "waiting until brokers accept more changes" in ran.err
    assert project.in_order()
