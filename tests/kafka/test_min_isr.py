"""What min.insync.replicas above the replication factor means to those who write."""

import pytest
from kafka import KafkaProducer
from kafka.errors import NotEnoughReplicasError

from kdeclare import sandbox as kafka_sandbox
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.records import expect
from tests.polling import retry_until_passes

pytestmark = pytest.mark.kafka


def write_record(sandbox: SandboxStatus, topic: str) -> int:
    """The offset of a record that all replicas in sync have; tried once. Raises KafkaError."""
    producer = KafkaProducer(bootstrap_servers=sandbox.bootstrap, acks="all", retries=0)
    try:
        offset: int = producer.send(topic, b"a record").get(timeout=60).offset
        return offset
    finally:
        producer.close(timeout=10)


def test_min_isr_above_factor_requires_all_replicas(kafka_bed: KafkaBed, sandbox: SandboxStatus) -> None:
    alone = kafka_bed.create({0: (1,)}, configs={"min.insync.replicas": "2"})
    pair = kafka_bed.create({0: (1, 2)}, configs={"min.insync.replicas": "3"})
    assert (write_record(sandbox, alone), write_record(sandbox, pair)) == (0, 0)
    try:
        kafka_sandbox.kill_broker(sandbox.folder, 2)
        retry_until_passes(lambda: expect(kafka_bed.topic(pair).partitions[0].isr == (1,)))
        with pytest.raises(NotEnoughReplicasError):
            write_record(sandbox, pair)
        assert write_record(sandbox, alone) == 1
    finally:
        kafka_sandbox.start_broker(sandbox.folder, 2)
    retry_until_passes(lambda: expect(set(kafka_bed.topic(pair).partitions[0].isr) == {1, 2}))
    assert write_record(sandbox, pair) == 1, "what was refused is not there"
