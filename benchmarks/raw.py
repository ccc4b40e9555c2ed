"""Run bare kafka-python calls for comparison with kdeclare: ``raw BOOTSTRAP PREFIX COUNT STEP…``."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, NewTopic

from benchmarks.topics import BATCH, HOUR_MS, configs, names

Numbered = list[tuple[int, str]]


def main(bootstrap: str, prefix: str, count: str, *steps: str) -> None:
    """Connect, run the steps one after another, and print the seconds of each step.

    A step is a key of `STEPS`. ``alter=MS`` sets retention times of at least MS milliseconds.
    """
    client = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    topics = list(enumerate(names(prefix, int(count))))
    seconds: dict[str, float] = {}
    for step in steps:
        begun = time.perf_counter()
        name, _, value = step.partition("=")
        STEPS[name](client, topics, int(value or HOUR_MS))
        seconds[name] = time.perf_counter() - begun
    client.close()
    print(json.dumps(seconds))


def _read(client: Any, topics: Numbered, _: int) -> None:
    """Read what a plan needs: all topics, and the declared config keys of existing topics."""
    there = {topic["name"] for topic in client.describe_topics()}
    keys = dict.fromkeys(configs(0))
    for batch in _batches((number, name) for number, name in topics if name in there):
        wanted = [ConfigResource("TOPIC", name, keys) for _, name in batch]
        client.describe_configs(wanted, config_filter="all")


def _create(client: Any, topics: Numbered, _: int) -> None:
    for batch in _batches(topics):
        client.create_topics([NewTopic(name, 1, 3, topic_configs=configs(number)) for number, name in batch])


def _alter(client: Any, topics: Numbered, retention_ms: int) -> None:
    for batch in _batches(topics):
        wanted = [
            ConfigResource("TOPIC", name, {"retention.ms": configs(number, retention_ms)["retention.ms"]})
            for number, name in batch
        ]
        client.alter_configs(wanted, raise_on_unknown=False, incremental=True)


def _delete(client: Any, topics: Numbered, _: int) -> None:
    for batch in _batches(topics):
        client.delete_topics([name for _, name in batch])


def _batches(topics: Iterable[tuple[int, str]]) -> Iterator[Numbered]:
    whole = list(topics)
    return (whole[i : i + BATCH] for i in range(0, len(whole), BATCH))


STEPS: dict[str, Callable[[Any, Numbered, int], None]] = {
    "read": _read,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
