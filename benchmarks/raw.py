"""The bare kafka-python calls of a job, as a process of its own: ``raw BOOTSTRAP PREFIX COUNT STEP…``."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, NewTopic

from benchmarks.topics import BATCH, configs, names


def main(bootstrap: str, prefix: str, count: str, *steps: str) -> None:
    """Connect, and do the steps one after the other; each is one of `STEPS`, or ``alter=VALUE``."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    for step in steps:
        name, _, value = step.partition("=")
        STEPS[name](client, names(prefix, int(count)), value)
    client.close()


def _read(client: Any, topics: list[str], _: str) -> None:
    """What a comparison needs: all topics, and the keys that are declared of those that exist."""
    there = {topic["name"] for topic in client.describe_topics()}
    for batch in _batches([name for name in topics if name in there]):
        wanted = [ConfigResource("TOPIC", name, dict.fromkeys(configs(0))) for name in batch]
        client.describe_configs(wanted, config_filter="all")


def _create(client: Any, topics: list[str], _: str) -> None:
    for batch in _batches(topics):
        client.create_topics([NewTopic(name, 1, 3, topic_configs=configs(0)) for name in batch])


def _alter(client: Any, topics: list[str], value: str) -> None:
    for batch in _batches(topics):
        wanted = [ConfigResource("TOPIC", name, {"retention.ms": value}) for name in batch]
        client.alter_configs(wanted, raise_on_unknown=False, incremental=True)


def _delete(client: Any, topics: list[str], _: str) -> None:
    for batch in _batches(topics):
        client.delete_topics(batch)


def _batches(topics: list[str]) -> Iterator[list[str]]:
    return (topics[i : i + BATCH] for i in range(0, len(topics), BATCH))


STEPS: dict[str, Callable[[Any, list[str], str], None]] = {
    "read": _read,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
