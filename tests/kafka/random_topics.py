"""Random topics with old records on real brokers: plain, transactional and compacted ones."""

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kafka
import pytest

from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST
from kdeclare.sandbox import SandboxSettings, broker_properties
from tests.kafka.test_bad_input import Project
from tests.polling import wait_for

HOUR = 3_600_000
RECORDS = 60
RECORD_BYTES = 40_000
SEGMENT_BYTES = 1024 * 1024
"""The smallest segments that Kafka allows; about 26 records."""
GROUPS = 3
TRANSACTIONS = 8
PLAIN, TRANSACTIONAL, COMPACTED = "plain", "transactional", "compacted"
_KEYS = 12
"""The number of keys of compacted topics."""


@dataclass(frozen=True)
class Case:
    """A topic with one partition, without limits, and what a plan changes.

    kind: PLAIN, TRANSACTIONAL or COMPACTED. ages: of its records, in milliseconds. limits: the configs that
    the plan changes. positions: how far each group has read, as a share of the log; None if the group does
    not read the topic.
    """

    kind: str
    ages: tuple[int, ...]
    segment_ms: int
    limits: Mapping[str, Any] = field(default_factory=dict)
    positions: tuple[float | None, ...] = ()
    policy: tuple[str, ...] = ("delete",)
    more_configs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def configs(self) -> dict[str, Any]:
        """The configs before the change: nothing is deleted by its age or size."""
        unlimited = {"retention.ms": -1, "retention.bytes": -1, "cleanup.policy": list(self.policy)}
        segments = {"segment.ms": self.segment_ms, "segment.bytes": SEGMENT_BYTES}
        return {**unlimited, **segments, **self.more_configs}


def draw_case(chance: random.Random, kind: str = PLAIN) -> Case:
    """Draw a topic with records of up to forty days, and limits that delete none, some or all of them."""
    span = chance.choice([2 * HOUR, 50 * HOUR, 900 * HOUR])
    ages = sorted((chance.randrange(span) + HOUR // 4 for _ in range(RECORDS)), reverse=True)
    for _ in range(chance.choice([0, 0, 3])):  # some producers send old timestamps
        ages[chance.randrange(RECORDS)] = chance.randrange(span) + HOUR // 4
    by_time = {"retention.ms": chance.choice([HOUR // 8, HOUR, 10 * HOUR, 300 * HOUR])}
    by_size = {"retention.bytes": chance.choice([0, 500_000, 1_500_000, 10_000_000])}
    limits: dict[str, Any] = chance.choice([by_time, by_time, by_size, by_time | by_size])
    policy: tuple[str, ...] = ("delete",)
    if kind == COMPACTED:
        policy = chance.choice([("compact", "delete"), ("compact",)])
        limits = {**limits, "cleanup.policy": ["compact", "delete"]}
    return Case(
        kind,
        tuple(ages),
        segment_ms=chance.choice([HOUR, 24 * HOUR, 168 * HOUR]),
        policy=policy,
        limits=limits,
        positions=tuple(chance.choice([None, 0.0, chance.random(), 1.0]) for _ in range(GROUPS)),
        more_configs={"min.cleanable.dirty.ratio": 0.01} if kind == COMPACTED else {},
    )


@contextmanager
def shorten_intervals(more: Mapping[str, str] | None = None) -> Iterator[None]:
    """Let brokers that start in this block delete and compact every second.

    more: further settings of these brokers.
    """
    usual = broker_properties.broker_properties
    intervals = {
        "log.retention.check.interval.ms": "1000",
        "log.initial.task.delay.ms": "500",
        "log.cleaner.backoff.ms": "500",
        **(more or {}),
    }

    def with_short_intervals(settings: SandboxSettings, broker_id: int, *log_dirs: Path) -> dict[str, str]:
        return usual(settings, broker_id, *log_dirs) | intervals

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker_properties, "broker_properties", with_short_intervals)
        yield


def write_records(bootstrap: str, topics: Mapping[str, Case], chance: random.Random) -> None:
    """Write the records of topics without transactions, each in a batch of its own: batches cover no time."""
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, linger_ms=0, batch_size=1)
    now_ms = int(time.time() * 1000)
    for name, case in topics.items():
        if case.kind != TRANSACTIONAL:
            _send(producer, name, case, now_ms, chance)
    producer.flush()
    producer.close()


@contextmanager
def write_transactions(bootstrap: str, topics: Mapping[str, Case], chance: random.Random) -> Iterator[None]:
    """Write the records of topics with transactions. The last one stays open until the end of the block."""
    now_ms = int(time.time() * 1000)
    transactional = {name: case for name, case in topics.items() if case.kind == TRANSACTIONAL}
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        linger_ms=0,
        batch_size=1,
        transactional_id=f"writer-{chance.random()}",
        transaction_timeout_ms=600_000,
    )
    try:
        _write_transactions(producer, transactional, now_ms, chance)
        yield
        producer.abort_transaction()
    finally:
        producer.close()


def _write_transactions(
    producer: kafka.KafkaProducer, topics: Mapping[str, Case], now_ms: int, chance: random.Random
) -> None:
    """Each transaction contains some of the records of each topic. The last one is left open."""
    ends = {name: [*_draw_ends(chance), RECORDS] for name in topics}
    producer.init_transactions()
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for name, case in topics.items():
            first = ends[name][number - 1] if number else 0
            _send(producer, name, case, now_ms, chance, range(first, ends[name][number]))
        producer.flush()
        if number == TRANSACTIONS - 1:
            return
        if chance.random() < 0.3:
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def _draw_ends(chance: random.Random) -> list[int]:
    """Draw where the transactions of a topic end; some contain no record of it."""
    return sorted(chance.randrange(RECORDS + 1) for _ in range(TRANSACTIONS - 1))


def _send(
    producer: kafka.KafkaProducer,
    name: str,
    case: Case,
    now_ms: int,
    chance: random.Random,
    numbers: Sequence[int] = range(RECORDS),
) -> None:
    for number in numbers:
        key = b"%d" % chance.randrange(_KEYS) if case.kind == COMPACTED else None
        value = chance.randbytes(RECORD_BYTES)
        producer.send(name, value, key=key, timestamp_ms=now_ms - case.ages[number])


def commit(cluster: KafkaCluster, offsets: Mapping[str, Mapping[str, int]]) -> None:
    """Commit offsets by group and topic; the first commit of a cluster creates the topic of offsets."""
    changes = {
        group: {TopicPartition(topic, 0): CommittedOffset(offset) for topic, offset in by_topic.items()}
        for group, by_topic in offsets.items()
    }
    wait_for(
        lambda: not any(cluster.groups.alter_offsets(changes).values()),
        every=0.5,
        problem="the offsets cannot be committed",
    )


def draw_positions(topics: Mapping[str, Case], ends: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the offset that each group reads next, by group and topic."""
    groups: dict[str, dict[str, int]] = {f"group-{number}": {} for number in range(GROUPS)}
    for name, case in topics.items():
        for group, position in zip(groups, case.positions, strict=True):
            if position is not None:
                groups[group][name] = round(position * ends[name])
    return groups


def read_bounds(cluster: KafkaCluster, topics: Mapping[str, Case]) -> dict[str, tuple[int, ...]]:
    """Return the start and the end of each topic's partition."""
    offsets = cluster.list_offsets(sorted(topics), (EARLIEST, LATEST))
    return {where.topic: found for where, found in offsets.items()}


def wait_for_starts(cluster: KafkaCluster, topics: Mapping[str, Case]) -> dict[str, int]:
    """Return the start offsets once retention has deleted nothing for five of its rounds."""
    deadline = time.monotonic() + 120
    starts: dict[str, int] = {}
    unchanged_since = time.monotonic()
    while time.monotonic() - unchanged_since < 6:
        assert time.monotonic() < deadline, "retention does not come to an end"
        found = {name: start for name, (start, _) in read_bounds(cluster, topics).items()}
        if found != starts:
            starts, unchanged_since = found, time.monotonic()
        time.sleep(0.5)
    return starts


def wait_for_cleaner(cluster: KafkaCluster, topics: Mapping[str, Case]) -> dict[str, int]:
    """Return the sizes of topics once the cleaner has compacted nothing for four of its rounds."""
    deadline = time.monotonic() + 120
    sizes: dict[str, int] = {}
    unchanged_since = time.monotonic()
    while time.monotonic() - unchanged_since < 2.5:
        assert time.monotonic() < deadline, "compaction does not come to an end"
        found = {
            where.topic: size
            for dirs in cluster.log_dirs(sorted(topics)).values()
            for log_dir in dirs
            for where, size in log_dir.sizes.items()
        }
        if found != sizes:
            sizes, unchanged_since = found, time.monotonic()
        time.sleep(0.3)
    return sizes


def declare_cases(project: Project, topics: Mapping[str, Case], *, changed: bool = False) -> None:
    """Declare the topics. changed: with the configs that the plan changes."""
    project.declare(
        *(
            (
                "Topic",
                name,
                {
                    "partitions": 1,
                    "replicationFactor": 1,
                    "configs": {**case.configs, **(case.limits if changed else {})},
                },
            )
            for name, case in topics.items()
        )
    )


Figures = Mapping[str, Any]


def read_figures(plan: str) -> dict[str, list[Figures]]:
    """Return the figures of the observations of a plan in JSON by topic, each with its code."""
    found: dict[str, list[Figures]] = {}
    for item in json.loads(plan)["observations"]:
        figures = {"code": item["code"], "path": item["path"], **item["figures"]}
        found.setdefault(item["resource"].removeprefix("Topic/"), []).append(figures)
    return found


def check_bounds(figures: Sequence[Figures], start: int, committed: Mapping[str, int], text: str) -> None:
    """Compare what a plan predicted with the first offset that is left, and with what groups had read.

    committed: the offset that each group reads next. text: describes the case if the bounds do not hold.
    """
    (deleted,) = (each for each in figures if each["code"] == "deletable-records")
    assert deleted["records_at_least"] <= start <= deleted["records_at_most"], text
    unread = {each["group"]: each for each in figures if each["code"] == "unread-records" and "group" in each}
    assert unread.keys() <= committed.keys(), text
    for group, position in committed.items():
        lost, predicted = max(0, start - position), unread.get(group, {})
        assert predicted.get("unread_at_least", 0) <= lost <= predicted.get("unread_at_most", 0), text
