"""The topic of a state: how it is created, which topics are refused, and what stays apart in it."""

import re

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.storage.conditional_objects import ListsProjects, ObjectConflict, ObjectVersion
from kdeclare.sandbox import SandboxStatus
from tests.beds import SET, KafkaBed, topic_resource
from tests.kafka.state.topics import StateTopics

pytestmark = pytest.mark.kafka

SAFE = {
    "cleanup.policy": "compact",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
}


@pytest.fixture
def topics(sandbox: SandboxStatus) -> StateTopics:
    return StateTopics(sandbox.bootstrap)


def test_first_write_creates_topic(kafka_bed: KafkaBed, topics: StateTopics, topic: str) -> None:
    objects = topics.open(topic)
    assert objects.get("state.json") is None
    assert objects.list_keys("") == ()
    objects.delete(["state.json"])
    assert topic not in kafka_bed.cluster.topics([topic]), "reading creates nothing"
    objects.create("state.json", b"{}")
    objects.close()
    [partition] = kafka_bed.topic(topic).partitions
    assert len(partition.replicas) == 3
    assert kafka_bed.overrides(topic_resource(topic)) == SAFE | {
        "delete.retention.ms": "604800000",
        "max.message.bytes": "1048588",
        "segment.bytes": "52428800",
        "segment.ms": "86400000",
    }


def test_created_topic_has_chosen_replication_factor(
    kafka_bed: KafkaBed, topics: StateTopics, topic: str
) -> None:
    objects = topics.open(topic, "?replication-factor=2")
    objects.create("state.json", b"{}")
    objects.close()
    [partition] = kafka_bed.topic(topic).partitions
    assert len(partition.replicas) == 2
    assert kafka_bed.overrides(topic_resource(topic))["min.insync.replicas"] == "1"
    with pytest.raises(KdeclareError, match=r"replication factor=2\. It must be at least 3"):
        topics.open(topic)


@pytest.mark.parametrize(
    ("configs", "message", "command"),
    [
        ({"cleanup.policy": "delete"}, "cleanup.policy=delete. It must be compact", "cleanup.policy=compact"),
        (
            {"cleanup.policy": "compact,delete"},
            "cleanup.policy=compact,delete. It must be compact",
            "cleanup.policy=compact",
        ),
        (
            {"min.insync.replicas": "1"},
            "min.insync.replicas=1. It must be at least 2",
            "min.insync.replicas=2",
        ),
        (
            {"unclean.leader.election.enable": "true"},
            "unclean.leader.election.enable=true. It must be false",
            "unclean.leader.election.enable=false",
        ),
        (
            {"delete.retention.ms": "1000"},
            "delete.retention.ms=1000. It must be at least 86400000",
            "delete.retention.ms=86400000",
        ),
        (
            {"max.message.bytes": "50000"},
            "max.message.bytes=50000. It must be at least 1000000",
            "max.message.bytes=1048588",
        ),
    ],
)
def test_unsafe_setting_is_refused_until_it_is_corrected(
    kafka_bed: KafkaBed,
    topics: StateTopics,
    topic: str,
    configs: dict[str, str],
    message: str,
    command: str,
) -> None:
    kafka_bed.create(name=topic, factor=3, configs=SAFE | configs)
    with pytest.raises(KdeclareError) as caught:
        topics.open(topic)
    [diagnostic] = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.detail) == (
        "state-storage-unsafe",
        f"The topic '{topic}' has {message}.",
    )
    assert diagnostic.hint == f"Run `kdeclare topic alter {topic} --config {command}`."
    name, _, value = command.partition("=")
    assert kafka_bed.alter(topic_resource(topic), (name, SET, value)) is None

    objects = topics.open(topic)
    objects.create("state.json", b"{}")
    objects.close()


def test_all_problems_of_a_topic_are_reported_with_commands_for_its_cluster(
    kafka_bed: KafkaBed, topics: StateTopics, topic: str
) -> None:
    kafka_bed.create(name=topic, partitions=2, factor=1)
    with pytest.raises(KdeclareError) as caught:
        topics.open(topic, f"?bootstrap-server={topics.bootstrap}")
    hints = [diagnostic.hint for diagnostic in caught.value.diagnostics]
    assert hints[0] == "Use another topic: the number of partitions cannot be reduced."
    server = re.escape(f"--bootstrap-server {topics.bootstrap}")
    for hint in hints[1:]:
        assert re.fullmatch(rf"Run `kdeclare topic alter {topic} --\S+ \S+ {server}`\.", hint), hint
    names = [re.findall(r"has (.+)=", diagnostic.detail)[0] for diagnostic in caught.value.diagnostics]
    assert names == ["partitions", "replication factor", "cleanup.policy", "min.insync.replicas"]


def test_projects_and_environments_are_apart(topics: StateTopics, topic: str) -> None:
    places = [("shop", "lab"), ("shop", "lab-2"), ("shop-2", "lab"), ("s", "hop/lab")]
    opened = [topics.open(topic, project=project, environment=environment) for project, environment in places]
    for number, objects in enumerate(opened[:3]):
        objects.create("state.json", b"%d" % number)
    for number, objects in enumerate(opened[:3]):
        stored = objects.get("state.json")
        assert stored is not None
        assert stored.data == b"%d" % number
        assert objects.list_keys("") == ("state.json",)
        assert isinstance(objects, ListsProjects)
        assert objects.list_projects() == (("shop", "lab"), ("shop", "lab-2"), ("shop-2", "lab"))
    assert opened[3].list_keys("") == ()
    for objects in opened:
        objects.close()


def test_recreated_topic_is_detected(kafka_bed: KafkaBed, topics: StateTopics, topic: str) -> None:
    objects = topics.open(topic)
    version = objects.create("state.json", b"{}")
    kafka_bed.cluster.delete_topics({topic: None})
    kafka_bed.create(name=topic, factor=3, configs=SAFE)
    other = topics.open(topic)
    other.create("state.json", b"other")

    def is_detected() -> None:
        for request in (
            lambda: objects.get("state.json"),
            lambda: objects.list_keys(""),
            lambda: objects.create("lease.json", b"{}"),
            lambda: objects.replace("state.json", b"{}", version),
        ):
            with pytest.raises(KdeclareError, match="was deleted or created again") as caught:
                request()
            assert caught.value.diagnostics[0].code == "state-storage-replaced"

    kafka_bed.eventually(is_detected)
    assert other.list_keys("") == ("state.json",)
    with pytest.raises(ObjectConflict):
        other.replace("state.json", b"{}", ObjectVersion(str(version)))
    other.close()
    objects.close()
