"""Consumers of kafka-python that reliably join their group.

kafka-python 3.0.12 can stop joining for good. A consumer that joins before it knows the partitions of a new
topic is assigned none. It joins again when it learns about them. If a `poll` times out while that happens,
the consumer never continues: it neither gets an assignment nor reports an error. Without the functions below,
one of ten consumers of new topics was stuck, with polls of 50 ms.
"""

import time
from collections.abc import Mapping

import kafka
import kafka.errors


def join_group(consumer: kafka.KafkaConsumer, topic: str) -> None:
    """Subscribe to a topic without records to read, and poll until the consumer has partitions.

    It subscribes as soon as it knows the partitions of the topic.
    """
    deadline = time.monotonic() + 60
    while not consumer.partitions_for_topic(topic):
        assert time.monotonic() < deadline, f"the consumer does not see the topic {topic}"
        time.sleep(0.05)
    consumer.subscribe([topic])
    deadline = time.monotonic() + 120
    while not consumer.assignment():
        consumer.poll(timeout_ms=200)
        assert time.monotonic() < deadline, "the consumer is assigned no partition"


def commit_offsets(
    consumer: kafka.KafkaConsumer, offsets: Mapping[kafka.TopicPartition, kafka.OffsetAndMetadata]
) -> None:
    """Commit offsets in topics without records to read.

    A group may rebalance at any time after its consumer was assigned partitions, which rejects a commit. The
    consumer then polls, which completes the rebalance, and commits again.
    """
    deadline = time.monotonic() + 120
    while True:
        try:
            consumer.commit(dict(offsets))
            return
        except (kafka.errors.RebalanceInProgressError, kafka.errors.CommitFailedError):
            assert time.monotonic() < deadline, "the group does not stop rebalancing"
            consumer.poll(timeout_ms=200)


def resubscribe(consumer: kafka.KafkaConsumer, topic: str) -> None:
    """Let a consumer that is stuck, or could not see the topic before, join its group from the start."""
    consumer.unsubscribe()
    consumer.subscribe([topic])
