"""URLs of states in topics, the settings of such topics, and the time limit of calls of the client."""

import re
import threading
import time
from pathlib import Path

import pytest
from kafka.errors import ProducerFencedError

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client.records.client_arguments import (
    build_record_client_arguments,
    call_within,
)
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.state_topic.topic_settings import TopicRequirements
from tests.fake_broker import fake_broker
from tests.kafka.state.topics import StateTopics

DESCRIBE_CLUSTER = 60
NOWHERE = StateTopics("127.0.0.1:1", timeout_s=1.0)
SAFE = {
    "cleanup.policy": "compact",
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "2",
    "delete.retention.ms": "86400000",
    "max.message.bytes": "1048588",
}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a/b", "", "does not name a topic"),
        ("a$b", "", "does not name a topic"),
        ("..", "", "does not name a topic"),
        ("", "", "does not name a topic"),
        ("a", "?partitions=3", "unknown option 'partitions'"),
        ("a", "?replication-factor=x", "not a positive number"),
        ("a", "?replication-factor=1.5", "not a whole number"),
    ],
)
def test_wrong_location_is_refused(name: str, options: str, message: str) -> None:
    with pytest.raises(KdeclareError, match=message) as caught:
        NOWHERE.open(name, options)
    assert caught.value.diagnostics[0].code == "state-location"


def test_settings_of_other_cluster_are_used(tmp_path: Path) -> None:
    topics = StateTopics("", tmp_path, timeout_s=1.0)
    (tmp_path / "state.properties").write_text("security.protocol=NONSENSE\n")
    with pytest.raises(KdeclareError, match="NONSENSE"):
        topics.open("state", "?bootstrap-server=127.0.0.1:1&command-config=state.properties")
    with pytest.raises(KdeclareError, match=r"missing\.properties"):
        topics.open("state", "?bootstrap-server=127.0.0.1:1&command-config=missing.properties")
    with pytest.raises(KdeclareError, match="connection refused"):
        topics.open("state", "?bootstrap-server=127.0.0.1:1&lease=30")


def describe_topic(*factors: int) -> Topic:
    return Topic("state", "id", tuple(Partition(tuple(range(factor))) for factor in factors))


def find_wrong_settings(requirements: TopicRequirements, topic: Topic, configs: dict[str, str | None]) -> str:
    """Return the messages, or nothing."""
    try:
        requirements.check(topic, configs)
    except KdeclareError as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize(("factor", "min_isr"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_created_topic_is_accepted(factor: int, min_isr: int) -> None:
    requirements = TopicRequirements("state", factor)
    configs = {key: str(value) for key, value in requirements.build_topic().configs.items()}
    assert configs["min.insync.replicas"] == str(min_isr)
    assert find_wrong_settings(requirements, describe_topic(factor), dict(configs)) == ""
    configs["min.insync.replicas"] = str(min_isr - 1)
    assert "min.insync.replicas" in find_wrong_settings(requirements, describe_topic(factor), dict(configs))


def test_more_replicas_need_more_in_sync() -> None:
    requirements = TopicRequirements("state", 3)
    wrong = find_wrong_settings(requirements, describe_topic(5), dict(SAFE))
    assert wrong == "The topic 'state' has min.insync.replicas=2. It must be at least 4."


def test_setting_that_cluster_does_not_return_is_wrong() -> None:
    for name in SAFE:
        configs = {key: value for key, value in SAFE.items() if key != name}
        assert name in find_wrong_settings(TopicRequirements("state", 3), describe_topic(3), dict(configs))


def test_command_for_other_cluster_can_be_pasted() -> None:
    options = ("--bootstrap-server", "h:1", "--command-config", "/a folder/x.properties")
    with pytest.raises(KdeclareError) as caught:
        TopicRequirements("state", 3, options).check(describe_topic(1), dict(SAFE))
    assert caught.value.diagnostics[0].hint == (
        "Run `kdeclare topic alter state --replication-factor 3 --bootstrap-server h:1 --command-config "
        "'/a folder/x.properties'`."
    )


def fail() -> None:
    raise ProducerFencedError("old")


def test_call_returns_result_and_error_in_time() -> None:
    assert call_within(5, lambda: 1, "counting") == 1
    with pytest.raises(Fault) as caught:
        call_within(5, fail, "writing")
    assert (caught.value.error, caught.value.message) == ("PRODUCER_FENCED", "old")
    never = threading.Event()
    started_at = time.monotonic()
    with pytest.raises(Fault, match=re.escape("committing took more than 0 s")) as caught:
        call_within(0.05, never.wait, "committing")
    assert caught.value.kind is FaultKind.UNKNOWN
    assert time.monotonic() - started_at < 30
    never.set()


def test_arguments_of_records_are_those_of_other_connections() -> None:
    config = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "client.id": "ci"}
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    arguments = build_record_client_arguments("h:1,h:2", config | {"sasl.jaas.config": login}, 3.0)
    assert arguments["bootstrap_servers"] == ["h:1", "h:2"]
    assert arguments["security_protocol"] == "SASL_PLAINTEXT"
    assert arguments["sasl_plain_password"] == "p"
    assert (arguments["client_id"], arguments["request_timeout_ms"]) == ("ci", 3000)
    assert (
        build_record_client_arguments("h:1", {"request.timeout.ms": "7000"}, 3.0)["request_timeout_ms"]
        == 7000
    )


def test_lost_connection_while_topic_is_opened_is_repeated_and_explained() -> None:
    with (
        fake_broker({DESCRIBE_CLUSTER: lambda _: None}) as broker,
        pytest.raises(KdeclareError) as caught,
    ):
        StateTopics(broker.bootstrap, timeout_s=1.0).open("state")
    (problem,) = caught.value.diagnostics
    assert problem.code == "state-storage"
    assert "A request for the state in the topic 'state' failed" in problem.detail
    assert len(broker.list_requests(DESCRIBE_CLUSTER)) > 2
