"""A strict controller mutation quota (KIP-599) on a real broker: kdeclare waits for it and reports it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import Retry, RetryPolicy
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.client.retrying_cluster import RetryingCluster
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.test_bad_input import Project

pytestmark = pytest.mark.kafka

RATE = 1.0
"""Brokers accept this many changes per second."""

OVER_QUOTA = 16
"""Topics that are too many for one request, even if the quota was not used before: it permits 11 at once."""


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
    """Brokers with the quota."""
    own = connect(sandbox.bootstrap, {})
    set_quota(own, RATE)
    own.close()
    try:
        yield kafka_bed
    finally:
        other = connect(sandbox.bootstrap, {})
        set_quota(other, None)
        other.close()


def test_creations_over_quota_are_refused_with_wait_time(quota_bed: KafkaBed) -> None:
    cluster = quota_bed.cluster
    new = [NewTopic(quota_bed.name(), 1, 1, None, {}) for _ in range(50)]
    faults = [fault for fault in cluster.create_topics(new).values() if isinstance(fault, Fault)]
    assert len(faults) >= 1
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
    # Each request creates about 11 topics at most, so there are more failed attempts than the limit.
    patient = RetryingCluster(quota_bed.cluster, RetryPolicy(attempts=2, on_retry=retries.append))
    new = [NewTopic(quota_bed.name(), 1, 1, None, {}) for _ in range(30)]
    assert not any(isinstance(answer, Fault) for answer in patient.create_topics(new).values())
    assert len(retries) >= 2


def test_apply_waits_for_quota_and_reports_it(
    quota_bed: KafkaBed, sandbox: SandboxStatus, tmp_path: Path
) -> None:
    project = Project(tmp_path, sandbox.bootstrap)
    names = [f"quota-{i}" for i in range(OVER_QUOTA)]
    for name in names:
        quota_bed.delete_at_end(project.name(name))
    project.topics(*names)
    ran = project("apply", "--yes", "--no-preflight")
    assert ran.code == 0, ran
    assert "waiting until brokers accept more changes" in ran.err
    assert project.in_order()
