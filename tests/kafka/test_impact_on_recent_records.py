"""What plans say about recent records, compared with what real brokers then do with such records."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import kafka
import kafka.errors
import pytest

from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client import read_properties
from kdeclare.providers.kafka.client.records.client_arguments import build_record_client_arguments
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER
from tests.beds import KafkaBed
from tests.commands import run_here
from tests.conftest import connect_as
from tests.kafka.group_consumers import join_and_commit
from tests.kafka.test_bad_input import Project

pytestmark = pytest.mark.kafka

MIB = 1024 * 1024
CANARY_KEY, CANARY_VALUE = "canary-key-7f3a", "canary-value-91bc"
LIBRARIES = {"uncompressed": "zlib", "gzip": "zlib", "snappy": "snappy", "lz4": "lz4", "zstd": "zstandard"}
"""The module that decompresses records, by the compression type of a topic."""


@pytest.fixture
def project(sandbox: SandboxStatus, tmp_path: Path) -> Project:
    return Project(tmp_path, sandbox.bootstrap)


def produce(project: Project, topic: str, keyed: int, unkeyed: int, value: bytes = b"x" * 100) -> None:
    """Write records with keys, and then records without, spread over all partitions."""
    producer = kafka.KafkaProducer(bootstrap_servers=project.bootstrap, max_request_size=10 * MIB)
    for number in range(keyed + unkeyed):
        key = f"{CANARY_KEY}-{number}".encode() if number < keyed else None
        producer.send(topic, value, key=key)
    producer.flush()
    producer.close()


def plan(project: Project, *arguments: str) -> list[dict[str, Any]]:
    """Return the observations of a plan. Neither the plan nor the output contains a key or a value."""
    planned = run_here(project.folder, "plan", "-v", "--format", "json", "--out", "it.plan", *arguments)
    assert planned.code == 0, planned.err
    for text in (planned.out, planned.err, (project.folder / "it.plan").read_text()):
        assert "canary" not in text
    observations: list[dict[str, Any]] = json.loads(planned.out).get("observations", [])
    return observations


def find(observations: list[dict[str, Any]], topic: str, code: str) -> dict[str, Any]:
    """Return the only observation about a topic with this code."""
    (found,) = [o for o in observations if (o["resource"], o["code"]) == (f"Topic/{topic}", code)]
    return found


@pytest.mark.thorough
def test_growth_tells_keys_of_all_compressions(project: Project) -> None:
    """Brokers compress the records as the topic demands, whatever the producer can."""

    def declare(partitions: int) -> None:
        project.declare(
            *(
                (
                    "Topic",
                    project.name(name),
                    {"partitions": partitions, "replicationFactor": 1, "configs": {"compression.type": name}},
                )
                for name in LIBRARIES
            )
        )

    declare(2)
    project.done("apply", "--yes")
    for name in LIBRARIES:
        produce(project, project.name(name), keyed=80, unkeyed=20, value=CANARY_VALUE.encode() * 20)
    declare(4)
    observations = plan(project)
    for name, module in LIBRARIES.items():
        topic = project.name(name)
        growth = find(observations, topic, "keys-move")
        if importlib.util.find_spec(module):
            assert growth["text"].startswith(
                "80 of 100 sampled recent records have keys. With 4 partitions instead of 2, half of the keys"
            ), name
        else:
            unknown = find(observations, topic, "not-determined")
            assert f"records are compressed with {name}, and the Python package" in unknown["text"]
            assert growth["text"].startswith(
                "With 4 partitions instead of 2, half of the keys of new records"
            )


def test_growth_of_topic_without_keys(project: Project) -> None:
    project.topics("plain", partitions=2)
    project.done("apply", "--yes")
    produce(project, project.name("plain"), keyed=0, unkeyed=30)
    project.topics("plain", partitions=3)
    growth = find(plan(project), project.name("plain"), "keys-move")
    assert (growth["level"], growth["figures"]["records_sampled"]) == ("info", 30)
    assert plan(project, "--no-impact") == []


def send(project: Project, topic: str, **record: Any) -> None:
    """Write one record. Raises KafkaError if the broker rejects it."""
    producer = kafka.KafkaProducer(bootstrap_servers=project.bootstrap, max_request_size=10 * MIB, retries=0)
    try:
        producer.send(topic, **record).get(30)
    finally:
        producer.close()


def test_smaller_limit_rejects_batches_as_predicted(project: Project) -> None:
    sizes = {"large": 1_900_000, "small": 200_000}
    project.topics(*sizes, configs={"max.message.bytes": 2 * MIB})
    project.done("apply", "--yes")
    for name, size in sizes.items():
        for _ in range(3):
            send(project, project.name(name), value=b"x" * size)
    project.topics(*sizes, configs={"max.message.bytes": MIB})
    observations = plan(project)
    large = find(observations, project.name("large"), "large-batches")
    small = find(observations, project.name("small"), "large-batches")
    # the first batch exceeds the limit of a sample, so that it is the only one
    assert (large["level"], large["text"]) == (
        "loss",
        "Brokers reject batches of more than 1 MiB: the only sampled recent batch has 1.8 MiB.",
    )
    assert (small["level"], small["figures"]["batches_sampled"]) == ("info", 3)
    project.done("apply", "it.plan", "--yes")
    send(project, project.name("small"), value=b"x" * sizes["small"])
    with pytest.raises(kafka.errors.MessageSizeTooLargeError):
        send(project, project.name("large"), value=b"x" * sizes["large"])


def test_limit_is_compared_with_the_size_of_the_batch_as_brokers_do(project: Project) -> None:
    """With exactly the size of the sampled batch, brokers accept it; with one byte less, they reject it."""
    topic = project.name("exact")
    project.topics("exact", configs={"max.message.bytes": MIB})
    project.done("apply", "--yes")
    send(project, topic, value=b"x" * 100_000)
    project.topics("exact", configs={"max.message.bytes": 100_000})
    size = find(plan(project), topic, "large-batches")["figures"]["largest_batch_bytes"]
    for limit, level in ((size, "info"), (size - 1, "loss")):
        project.topics("exact", configs={"max.message.bytes": limit})
        assert find(plan(project), topic, "large-batches")["level"] == level
        project.done("apply", "it.plan", "--yes")
        if level == "info":
            send(project, topic, value=b"x" * 100_000)
    with pytest.raises(kafka.errors.MessageSizeTooLargeError):
        send(project, topic, value=b"x" * 100_000)


def test_compaction_rejects_records_without_keys_as_predicted(project: Project) -> None:
    topic = project.name("table")
    project.topics("table")
    project.done("apply", "--yes")
    produce(project, topic, keyed=8, unkeyed=2)
    project.topics("table", configs={"cleanup.policy": ["compact"]})
    missing = find(plan(project), topic, "records-without-keys")
    assert (missing["level"], missing["text"]) == (
        "loss",
        "2 of 10 sampled recent records have no keys. Once the topic is compacted, brokers reject such "
        "records.",
    )
    project.done("apply", "it.plan", "--yes")
    send(project, topic, key=b"k", value=b"x")
    with pytest.raises(kafka.errors.KafkaError):
        send(project, topic, value=b"x")
    project.topics("table", configs={"cleanup.policy": ["delete"]})
    assert "It then deletes even the latest record" in find(plan(project), topic, "compaction-ends")["text"]


def test_records_of_transactions_are_sampled_without_their_markers(project: Project) -> None:
    topic = project.name("exactly-once")
    project.topics("exactly-once")
    project.done("apply", "--yes")
    producer = kafka.KafkaProducer(bootstrap_servers=project.bootstrap, transactional_id=topic)
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        producer.send(topic, b"x", key=b"k")
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    project.topics("exactly-once", partitions=2)
    growth = find(plan(project), topic, "keys-move")
    assert growth["text"].startswith("All 4 sampled recent records have keys.")


def test_growth_names_groups_whose_clients_choose_their_partitions(project: Project) -> None:
    topic = project.name("assigned")
    project.topics("assigned")
    project.done("apply", "--yes")
    where = kafka.TopicPartition(topic, 0)
    for group, joins in ((f"{topic}-assigns", False), (f"{topic}-subscribes", True)):
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=project.bootstrap, group_id=group, enable_auto_commit=False
        )
        if joins:
            join_and_commit(consumer, topic, 0)
        else:
            consumer.assign([where])
            consumer.commit({where: kafka.OffsetAndMetadata(0, "", -1)})
        consumer.close()
    project.topics("assigned", partitions=2)
    text = find(plan(project), topic, "own-assignments")["text"]
    assert text.startswith(f"Clients commit offsets for group '{topic}-assigns' without joining the group.")


def test_sample_needs_read_permission(secured_sandbox: SandboxStatus, tmp_path: Path) -> None:
    """The reader may only describe. Without a group, Read on the topic is enough."""
    admin = connect_as(secured_sandbox, ADMIN)
    bed = KafkaBed(admin, secured_sandbox.bootstrap)
    topic = bed.create(configs={"max.message.bytes": str(2 * MIB)})
    groups_before = admin.groups.list_groups()
    client = resolve_layout(Path(secured_sandbox.folder)).security.client(READER)
    project = Project(tmp_path, secured_sandbox.bootstrap, environment={"clientConfigFile": str(client)})
    project.declare(
        ("Topic", topic, {"partitions": 2, "replicationFactor": 1, "configs": {"max.message.bytes": MIB}})
    )
    reason = "kdeclare lacks the Read permission on the topic."
    granted = parse_binding(f"ALLOW User:{READER} READ topic:{topic} from *")
    try:
        # the topic is empty, so that nothing is fetched
        assert find(plan(project, "--adopt"), topic, "keys-move")["level"] == "info"
        produce_as(secured_sandbox, topic)
        texts = [o["text"] for o in plan(project, "--adopt") if o["code"] == "not-determined"]
        assert [text for text in texts if text.endswith(reason)] == [
            f"kdeclare could not determine whether recent records have keys: {reason}",
            f"kdeclare could not determine whether brokers reject batches like the recent ones: {reason}",
        ]
        assert admin.create_acls([granted]) == {granted: None}

        def check() -> None:
            growth = find(plan(project, "--adopt"), topic, "keys-move")
            assert growth["text"].startswith("The only sampled recent record has a key.")

        bed.eventually(check)
        assert admin.groups.list_groups() == groups_before
    finally:
        admin.delete_acls([granted])
        bed.clean()
        admin.close()


def produce_as(sandbox: SandboxStatus, topic: str) -> None:
    """Write one record with a key as the administrator."""
    client = read_properties(resolve_layout(Path(sandbox.folder)).security.client(ADMIN))
    producer = kafka.KafkaProducer(**build_record_client_arguments("", client, 10.0))
    producer.send(topic, b"x", key=b"k").get(30)
    producer.close()
