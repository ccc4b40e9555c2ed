"""Consumers of kafka-python that reliably join their group.

kafka-python 3.0.12 can stop joining for good. A consumer that joins before it knows the partitions of a new
topic is assigned none. It joins again when it learns about them. If a `poll` times out while that happens,
the consumer never continues: it neither gets an assignment nor reports an error. Without the functions below,
one of ten consumers of new topics was stuck, with polls of 50 ms.
"""

import time

import kafka
import kafka.errors

from tests.polling import wait_for

_ATTEMPT_S = 15.0
"""The time in which a consumer joins its group, unless it is stuck."""


def join_group(consumer: kafka.KafkaConsumer, topic: str) -> None:
    """Subscribe to a topic without records to read, and poll until the consumer has partitions.

    It subscribes as soon as it knows the partitions of the topic, and again if it is stuck.
    """
    wait_for(
        lambda: consumer.partitions_for_topic(topic), problem=f"the consumer does not see the topic {topic}"
    )
    deadline = time.monotonic() + 120
    while not consumer.assignment():
        assert time.monotonic() < deadline, "the consumer is assigned no partition"
        resubscribe(consumer, topic)
        stuck_at = time.monotonic() + _ATTEMPT_S
        while not consumer.assignment() and time.monotonic() < stuck_at:
            consumer.poll(timeout_ms=200)


def join_and_commit(consumer: kafka.KafkaConsumer, topic: str, offset: int) -> None:
    """Join the group, and commit an offset in partition 0 of a topic without records to read.

    The consumer can join again right after it was assigned partitions. A commit is then rejected, and the
    consumer can be stuck, so it starts from the beginning.
    """
    where = kafka.TopicPartition(topic, 0)
    deadline = time.monotonic() + 120
    while True:
        join_group(consumer, topic)
        try:
            consumer.commit({where: kafka.OffsetAndMetadata(offset, "", -1)})
            return
        except (kafka.errors.RebalanceInProgressError, kafka.errors.CommitFailedError):
            assert time.monotonic() < deadline, "the group does not stop rebalancing"
            consumer.unsubscribe()


def resubscribe(consumer: kafka.KafkaConsumer, topic: str) -> None:
    """Let a consumer that is stuck, or could not see the topic before, join its group from the start."""
    consumer.unsubscribe()
    consumer.subscribe([topic])
