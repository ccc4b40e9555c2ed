"""Consumers of kafka-python that reliably join their group.

kafka-python 3.0.12 can stop joining for good. A consumer that joins before it knows the partitions of a new
topic is assigned none. It joins again when it learns about them. If a `poll` times out while that happens,
the consumer never continues: it neither gets an assignment nor reports an error. Without the functions below,
one of ten consumers of new topics was stuck, with polls of 50 ms.
"""

import time

import kafka


def subscribe_when_known(consumer: kafka.KafkaConsumer, topic: str, timeout_s: float = 60) -> None:
    """Subscribe to a topic as soon as the consumer knows its partitions."""
    deadline = time.monotonic() + timeout_s
    while not consumer.partitions_for_topic(topic):
        assert time.monotonic() < deadline, f"the consumer does not see the topic {topic}"
        time.sleep(0.05)
    consumer.subscribe([topic])


def wait_for_assignment(consumer: kafka.KafkaConsumer, timeout_s: float = 120) -> None:
    """Poll a consumer without records to read until it has partitions."""
    deadline = time.monotonic() + timeout_s
    while not consumer.assignment():
        consumer.poll(timeout_ms=200)
        assert time.monotonic() < deadline, "the consumer is assigned no partition"


def resubscribe(consumer: kafka.KafkaConsumer, topic: str) -> None:
    """Let a consumer that is stuck, or could not see the topic before, join its group from the start."""
    consumer.unsubscribe()
    consumer.subscribe([topic])
