"""What plans predict about deleted and unread records, compared with what real brokers delete."""

import json
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kafka
import pytest
import yaml

from kdeclare import sandbox as kafka_sandbox
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import EARLIEST, LATEST
from kdeclare.sandbox import SandboxSettings, SandboxStatus, broker_properties
from tests.commands import run_here
from tests.conftest import free_port
from tests.kafka.test_bad_input import Project

pytestmark = pytest.mark.kafka

HOUR = 3_600_000
CASES = 40
RECORDS = 60
RECORD_BYTES = 40_000
SEGMENT_BYTES = 1024 * 1024
"""The smallest segments that Kafka allows; about 26 records."""


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxStatus]:
    """One broker that looks for records to delete every second."""
    usual = broker_properties.broker_properties

    def with_short_intervals(settings: SandboxSettings, broker_id: int, *log_dirs: Path) -> dict[str, str]:
        intervals = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "500"}
        return usual(settings, broker_id, *log_dirs) | intervals

    settings = SandboxSettings(tmp_path_factory.mktemp("impact"), brokers=1, racks=1, port=free_port(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker_properties, "broker_properties", with_short_intervals)
        try:
            yield kafka_sandbox.start(settings, print)
        finally:
            kafka_sandbox.reset(settings.folder)


@pytest.fixture
def cluster(quick: SandboxStatus) -> Iterator[KafkaCluster]:
    client = connect(quick.bootstrap, {})
    try:
        yield client
    finally:
        client.close()


@dataclass(frozen=True)
class Case:
    """A topic with one partition. ages: of its records. limits: the configs that a plan changes.

    committed: the offset that the topic's group reads next.
    """

    ages: tuple[int, ...]
    segment_ms: int
    limits: Mapping[str, Any]
    committed: int

    @property
    def configs(self) -> dict[str, Any]:
        """The configs before the change: nothing is deleted."""
        unlimited = {"retention.ms": -1, "retention.bytes": -1, "cleanup.policy": ["delete"]}
        return unlimited | {"segment.ms": self.segment_ms, "segment.bytes": SEGMENT_BYTES}


def draw_case(chance: random.Random) -> Case:
    """Draw a topic with records of up to forty days, and limits that delete none, some or all of them."""
    span = chance.choice([2 * HOUR, 50 * HOUR, 900 * HOUR])
    ages = sorted((chance.randrange(span) + HOUR // 4 for _ in range(RECORDS)), reverse=True)
    for _ in range(chance.choice([0, 0, 3])):  # some producers send old timestamps
        ages[chance.randrange(RECORDS)] = chance.randrange(span) + HOUR // 4
    by_time = {"retention.ms": chance.choice([HOUR // 8, HOUR, 10 * HOUR, 300 * HOUR])}
    by_size = {"retention.bytes": chance.choice([0, 500_000, 1_500_000, 10_000_000])}
    return Case(
        tuple(ages),
        segment_ms=chance.choice([HOUR, 24 * HOUR, 168 * HOUR]),
        limits=chance.choice([by_time, by_time, by_size, by_time | by_size]),
        committed=chance.randrange(RECORDS + 1),
    )


def write_records(quick: SandboxStatus, topics: Mapping[str, Case], chance: random.Random) -> None:
    """Write the records, each in a batch of its own, so that batches cover no time."""
    producer = kafka.KafkaProducer(bootstrap_servers=quick.bootstrap, linger_ms=0, batch_size=1)
    now_ms = int(time.time() * 1000)
    for topic, case in topics.items():
        for age in case.ages:
            producer.send(topic, chance.randbytes(RECORD_BYTES), timestamp_ms=now_ms - age)
    producer.flush()
    producer.close()


def commit(cluster: KafkaCluster, offsets: Mapping[str, tuple[str, int]]) -> None:
    """Commit one offset for each group; the first commit of a cluster creates the topic of offsets."""
    changes = {
        group: {TopicPartition(topic, 0): CommittedOffset(offset)}
        for group, (topic, offset) in offsets.items()
    }
    deadline = time.monotonic() + 60
    while any(cluster.groups.alter_offsets(changes).values()):
        assert time.monotonic() < deadline, "the offsets cannot be committed"
        time.sleep(0.5)


def wait_for_starts(cluster: KafkaCluster, topics: Mapping[str, Case]) -> dict[str, int]:
    """Return the start offsets once retention has deleted nothing for five of its rounds."""
    deadline = time.monotonic() + 120
    starts: dict[str, int] = {}
    unchanged_since = time.monotonic()
    while time.monotonic() - unchanged_since < 6:
        assert time.monotonic() < deadline, "retention does not come to an end"
        offsets = cluster.list_offsets(sorted(topics), (EARLIEST, LATEST))
        found = {where.topic: start for where, (start, _) in offsets.items()}
        if found != starts:
            starts, unchanged_since = found, time.monotonic()
        time.sleep(0.5)
    return starts


def test_predicted_bounds_hold(quick: SandboxStatus, cluster: KafkaCluster, tmp_path: Path) -> None:
    """Forty random topics: what Kafka deletes, and what groups then cannot read, is within the bounds."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    project = Project(tmp_path, quick.bootstrap)
    cases = {project.name(f"t{number}"): draw_case(chance) for number in range(CASES)}
    spec = {"partitions": 1, "replicationFactor": 1}
    project.declare(*(("Topic", name, {**spec, "configs": case.configs}) for name, case in cases.items()))
    assert run_here(tmp_path, "apply", "--yes").code == 0
    write_records(quick, cases, chance)
    commit(cluster, {f"group-of-{name}": (name, case.committed) for name, case in cases.items()})
    project.declare(
        *(
            ("Topic", name, {**spec, "configs": {**case.configs, **case.limits}})
            for name, case in cases.items()
        )
    )
    planned = run_here(tmp_path, "plan", "--format", "json", "--out", "it.plan")
    assert planned.code == 0, planned.err
    figures: dict[tuple[str, str], dict[str, Any]] = {
        (item["resource"].removeprefix("Topic/"), item["code"]): item["figures"]
        for item in json.loads(planned.out)["observations"]
    }
    assert run_here(tmp_path, "apply", "it.plan", "--yes").code == 0
    starts = wait_for_starts(cluster, cases)
    for name, case in cases.items():
        predicted = figures[name, "deletable-records"]
        unread = figures.get((name, "unread-records"), {})
        lost = max(0, starts[name] - case.committed)
        case_text = f"seed {seed}, {name}: {case}, {predicted}, {unread}, deleted {starts[name]}"
        assert predicted["records_at_least"] <= starts[name] <= predicted["records_at_most"], case_text
        assert unread.get("unread_at_least", 0) <= lost <= unread.get("unread_at_most", 0), case_text
    assert any(starts.values())
    assert not all(starts.values())


def test_deletion_names_writers_and_readers(
    quick: SandboxStatus, cluster: KafkaCluster, tmp_path: Path
) -> None:
    project = Project(tmp_path, quick.bootstrap)
    project.topics("gone")
    assert run_here(tmp_path, "apply", "--yes").code == 0
    topic = project.name("gone")
    producer = kafka.KafkaProducer(bootstrap_servers=quick.bootstrap)
    for _ in range(7):
        producer.send(topic, b"x").get(30)
    producer.close()
    commit(cluster, {"billing": (topic, 3)})
    project.declare()
    planned = run_here(tmp_path, "plan", "--allow-deletes", "--allow-empty")
    assert planned.code == 0, planned.err
    assert "The topic holds 7 records (" in planned.out
    assert (
        "1 producer wrote to the topic within the last hour. The newest record is timestamped" in planned.out
    )
    assert "Group 'billing' has not read 4 of these records." in planned.out


def test_run_reports_what_brokers_did(quick: SandboxStatus, cluster: KafkaCluster, tmp_path: Path) -> None:
    """A deleted topic is gone, and the deleted records are those before the first offset of the log."""
    project = Project(tmp_path, quick.bootstrap)
    project.topics("short", "gone")
    assert run_here(tmp_path, "apply", "--yes").code == 0
    topic, gone = project.name("short"), project.name("gone")
    producer = kafka.KafkaProducer(bootstrap_servers=quick.bootstrap)
    now_ms = int(time.time() * 1000)
    for name in (topic, gone):
        for _ in range(7):
            producer.send(name, b"x", timestamp_ms=now_ms - 100 * HOUR).get(30)
    producer.close()
    spec = {"partitions": 1, "replicationFactor": 1, "configs": {"retention.ms": HOUR}}
    project.declare(("Topic", topic, spec))
    applied = run_here(tmp_path, "apply", "--yes", "--allow-deletes", "--format", "json")
    assert applied.code == 0, applied.out + applied.err
    document = json.loads(applied.out)
    effects = {item["resource"].removeprefix("Topic/"): item for item in document["effects"]}
    assert (effects[gone]["status"], effects[gone]["observed"]) == ("observed", "The topic is gone.")
    assert gone not in cluster.topics()
    assert effects[topic]["predicted"].startswith("Kafka deletes 7 of 7 records")
    deleted = effects[topic]["figures"]["records_deleted"]
    assert (effects[topic]["status"], deleted) in {("pending", 0), ("observed", 7)}
    if not deleted:
        assert effects[topic]["observed"].endswith("Every 1 s, brokers check which records to delete.")
    shown = run_here(tmp_path, "history", document["run_id"], "--format", "json")
    assert json.loads(shown.out)["effects"] == document["effects"]
    deadline = time.monotonic() + 60
    while cluster.list_offsets([topic], (EARLIEST,))[TopicPartition(topic, 0)] != (7,):
        assert time.monotonic() < deadline, "the records are not deleted"
        time.sleep(0.5)


def test_policies_see_unread_records_in_plan_and_apply(
    quick: SandboxStatus, cluster: KafkaCluster, tmp_path: Path
) -> None:
    """A group that has read everything when the plan is made, and reads again before it is applied."""
    project = Project(tmp_path, quick.bootstrap)
    document = yaml.safe_load((tmp_path / "kdeclare.yaml").read_text())
    document["spec"]["policies"] = [
        {"name": "unread", "class": "kdeclare.policy.rules:NoLossOfUnreadRecords"},
        {"name": "read", "class": "kdeclare.policy.rules:NoDeleteWithReaders"},
    ]
    (tmp_path / "kdeclare.yaml").write_text(yaml.safe_dump(document))
    project.topics("kept")
    assert run_here(tmp_path, "apply", "--yes").code == 0
    topic = project.name("kept")
    producer = kafka.KafkaProducer(bootstrap_servers=quick.bootstrap)
    now_ms = int(time.time() * 1000)
    for _ in range(7):
        producer.send(topic, b"x", timestamp_ms=now_ms - 100 * HOUR).get(30)
    producer.close()
    commit(cluster, {"reporting": (topic, 7)})
    spec = {"partitions": 1, "replicationFactor": 1, "configs": {"retention.ms": HOUR}}
    project.declare(("Topic", topic, spec))
    planned = run_here(tmp_path, "plan", "--out", "it.plan")
    assert planned.code == 0, planned.out + planned.err
    commit(cluster, {"reporting": (topic, 3)})
    applied = run_here(tmp_path, "apply", "it.plan", "--yes")
    message = f"The change of {topic} would delete records that group 'reporting' has not read."
    assert (applied.code, message in applied.out) == (3, True), applied.out + applied.err
    planned = run_here(tmp_path, "plan")
    assert (planned.code, message in planned.out) == (3, True), planned.out + planned.err
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=quick.bootstrap, group_id="reporting", enable_auto_commit=False
    )
    try:
        deadline = time.monotonic() + 60
        while not consumer.assignment():
            assert time.monotonic() < deadline, "the consumer gets no partition"
            consumer.poll(500)
        project.declare()
        planned = run_here(tmp_path, "plan", "--allow-deletes", "--allow-empty")
    finally:
        consumer.close(autocommit=False)
    message = (
        f"{topic} would be deleted, but group 'reporting' reads it and group 'reporting' has not read all"
    )
    assert (planned.code, message in planned.out) == (3, True), planned.out + planned.err
    commit(cluster, {"reporting": (topic, 7)})
    planned = run_here(tmp_path, "plan", "--allow-deletes", "--allow-empty")
    assert planned.code == 0, planned.out + planned.err
