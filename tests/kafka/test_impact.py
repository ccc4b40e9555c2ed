"""What plans predict about deleted and unread records, compared with what real brokers delete."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import kafka
import pytest
import yaml

from kdeclare import sandbox as kafka_sandbox
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import EARLIEST
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.commands import run_here
from tests.conftest import free_port
from tests.kafka.group_consumers import join_group
from tests.kafka.random_topics import (
    COMPACTED,
    HOUR,
    PLAIN,
    RECORD_BYTES,
    RECORDS,
    TRANSACTIONAL,
    check_bounds,
    commit,
    declare_cases,
    draw_case,
    draw_positions,
    read_bounds,
    read_figures,
    shorten_intervals,
    wait_for_cleaner,
    wait_for_starts,
    write_records,
    write_transactions,
)
from tests.kafka.test_bad_input import Project
from tests.polling import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

KINDS = (PLAIN, PLAIN, TRANSACTIONAL, COMPACTED)
CASES = 40


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxStatus]:
    """One broker that looks for records to delete every second."""
    settings = SandboxSettings(tmp_path_factory.mktemp("impact"), brokers=1, racks=1, port=free_port(1))
    with shorten_intervals():
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


def test_predicted_bounds_hold(quick: SandboxStatus, cluster: KafkaCluster, tmp_path: Path) -> None:
    """Forty random topics: what Kafka deletes, and what groups then cannot read, is within the bounds."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    project = Project(tmp_path, quick.bootstrap)
    cases = {
        project.name(f"t{number}"): draw_case(chance, KINDS[number % len(KINDS)]) for number in range(CASES)
    }
    declare_cases(project, cases)
    assert run_here(tmp_path, "apply", "--yes").code == 0
    write_records(quick.bootstrap, cases, chance)
    with write_transactions(quick.bootstrap, cases, chance):
        sizes = wait_for_cleaner(cluster, cases)
        ends = {name: end for name, (_, end) in read_bounds(cluster, cases).items()}
        committed = draw_positions(cases, ends)
        commit(cluster, committed)
        declare_cases(project, cases, changed=True)
        planned = run_here(tmp_path, "plan", "--format", "json", "--out", "it.plan")
        assert planned.code == 0, planned.err
        figures = read_figures(planned.out)
        assert run_here(tmp_path, "apply", "it.plan", "--yes").code == 0
        starts = wait_for_starts(cluster, cases)
    for name, case in cases.items():
        text = f"seed {seed}, {name}: {case}, {figures[name]}, deleted {starts[name]} of {ends[name]}"
        read_by = {group: at[name] for group, at in committed.items() if name in at}
        check_bounds(figures[name], starts[name], read_by, text)
    assert any(starts.values())
    assert not all(starts.values())
    for name, case in cases.items():  # transactions take more offsets, and compaction leaves fewer records
        if case.kind == TRANSACTIONAL:
            assert ends[name] > RECORDS
    written = RECORDS * RECORD_BYTES
    assert any(sizes[name] < written for name, case in cases.items() if case.kind == COMPACTED)


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
    commit(cluster, {"billing": {topic: 3}})
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
    wait_for(
        lambda: cluster.list_offsets([topic], (EARLIEST,))[TopicPartition(topic, 0)] == (7,),
        every=0.5,
        problem="the records are not deleted",
    )


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
    commit(cluster, {"reporting": {topic: 7}})
    spec = {"partitions": 1, "replicationFactor": 1, "configs": {"retention.ms": HOUR}}
    project.declare(("Topic", topic, spec))
    planned = run_here(tmp_path, "plan", "--out", "it.plan")
    assert planned.code == 0, planned.out + planned.err
    commit(cluster, {"reporting": {topic: 3}})
    applied = run_here(tmp_path, "apply", "it.plan", "--yes")
    message = f"The change to {topic} would delete records that group 'reporting' has not read."
    assert (applied.code, message in applied.out) == (3, True), applied.out + applied.err
    planned = run_here(tmp_path, "plan")
    assert (planned.code, message in planned.out) == (3, True), planned.out + planned.err
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=quick.bootstrap, group_id="reporting", enable_auto_commit=False
    )
    try:
        join_group(consumer, topic)
        project.declare()
        planned = run_here(tmp_path, "plan", "--allow-deletes", "--allow-empty")
    finally:
        consumer.close(autocommit=False)
    message = (
        f"{topic} would be deleted, but group 'reporting' reads it and group 'reporting' has not read all"
    )
    assert (planned.code, message in planned.out) == (3, True), planned.out + planned.err
    commit(cluster, {"reporting": {topic: 7}})
    planned = run_here(tmp_path, "plan", "--allow-deletes", "--allow-empty")
    assert planned.code == 0, planned.out + planned.err
