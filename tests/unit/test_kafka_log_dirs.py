"""The adapter's requests about leaders and log directories, and how it reads the responses."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from kafka.protocol.admin import (
    AlterReplicaLogDirsResponse,
    DescribeClusterResponse,
    DescribeLogDirsResponse,
    ElectLeadersResponse,
)
from kafka.protocol.metadata import MetadataResponse

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.request_values import LogDir
from tests.fake_broker import Answer, FakeBroker, fake_broker

METADATA, MOVE, DESCRIBE, ELECT, CLUSTER = 3, 34, 35, 43, 60
VERSIONS = {MOVE: 2, DESCRIBE: 4, ELECT: 2}
ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


@contextmanager
def run_cluster(
    *answers: dict[int, Answer], versions: Mapping[int, int] = VERSIONS, **options: Any
) -> Iterator[tuple[KafkaCluster, list[FakeBroker]]]:
    """Brokers 1, 2, …, each with its own responses."""
    brokers: list[FakeBroker] = []

    def respond_metadata(_: Any) -> Any:
        kind = MetadataResponse
        return kind(
            throttle_time_ms=0,
            brokers=[
                kind.MetadataResponseBroker(number, "127.0.0.1", broker.port, None)
                for number, broker in enumerate(brokers, 1)
            ],
            cluster_id="fake",
            controller_id=1,
            topics=[],
            error_code=0,
        )

    def respond_cluster(_: Any) -> Any:
        return DescribeClusterResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            endpoint_type=1,
            cluster_id="fake",
            controller_id=1,
            brokers=[],
        )

    with ExitStack() as stack:
        for own in answers:
            known: dict[int, Answer] = {METADATA: respond_metadata, CLUSTER: respond_cluster, **own}
            brokers.append(stack.enter_context(fake_broker(known, versions)))
        made = connect(brokers[0].bootstrap, {}, **options)
        stack.callback(made.close)
        yield made, brokers


def make_dirs_response(*, code: int = 0, results: list[Any] | None = None) -> Any:
    """A DescribeLogDirs response: by default one directory with a replica and an arriving one."""
    kind = DescribeLogDirsResponse.DescribeLogDirsResult
    topic = kind.DescribeLogDirsTopic
    partitions = [
        topic.DescribeLogDirsPartition(
            partition_index=index, partition_size=100 + index, offset_lag=0, is_future_key=index == 1
        )
        for index in (0, 1)
    ]
    one = kind(
        error_code=0,
        log_dir="/data",
        topics=[topic(name="t", partitions=partitions)],
        total_bytes=1000,
        usable_bytes=10,
    )
    offline = kind(error_code=56, log_dir="/broken", topics=[], total_bytes=-1, usable_bytes=-1)
    found = [one, offline] if results is None else results
    return DescribeLogDirsResponse(throttle_time_ms=0, error_code=code, results=found)


def test_log_dirs_are_read_from_response() -> None:
    with run_cluster({DESCRIBE: lambda _: make_dirs_response()}) as (kafka, (broker,)):
        found = kafka.log_dirs()
    assert found == {
        1: (
            LogDir("/data", {ONE: 100}, {TWO: 101}, 1000, 10),
            LogDir("/broken", {}, {}, error="KAFKA_STORAGE_ERROR"),
        )
    }
    (sent,) = broker.list_requests(DESCRIBE)
    assert sent.topics is None


def test_log_dirs_of_known_topics_need_no_metadata_of_topics() -> None:
    topic = Topic("t", "", (Partition((1,), 1, (1,)),) * 2)
    with run_cluster({DESCRIBE: lambda _: make_dirs_response()}) as (kafka, (broker,)):
        kafka.log_dirs(["t"], known={"t": topic})
    (sent,) = broker.list_requests(DESCRIBE)
    assert [(item.topic, list(item.partitions)) for item in sent.topics] == [("t", [0, 1])]
    assert not any(request.topics for request in broker.list_requests(METADATA))


def test_log_dirs_of_old_broker_have_no_volume_sizes() -> None:
    with run_cluster({DESCRIBE: lambda _: make_dirs_response()}, versions={DESCRIBE: 3}) as (kafka, _):
        (first, _) = kafka.log_dirs()[1]
    assert (first.total, first.usable) == (None, None)


@pytest.mark.parametrize("silence", [None, ...])
def test_log_dirs_omit_silent_broker_in_time(silence: Any) -> None:
    answers: list[dict[int, Answer]] = [
        {DESCRIBE: lambda _: make_dirs_response()},
        {DESCRIBE: lambda _: silence},
    ]
    with run_cluster(*answers, request_timeout_s=2) as (kafka, _):
        begun = time.monotonic()
        assert list(kafka.log_dirs()) == [1]
        assert time.monotonic() - begun < 25


def test_log_dirs_without_any_response_is_fault() -> None:
    with (
        run_cluster({DESCRIBE: lambda _: ...}, request_timeout_s=0.3) as (kafka, _),
        pytest.raises(Fault) as raised,
    ):
        kafka.log_dirs()
    assert (raised.value.error, raised.value.kind) == ("REQUEST_TIMED_OUT", FaultKind.RETRIABLE)


@pytest.mark.parametrize(
    ("answer", "version"),
    [(make_dirs_response(code=31, results=[]), 4), (make_dirs_response(results=[]), 2)],
    ids=["said", "empty"],
)
def test_log_dirs_without_permission_is_fault(answer: Any, version: int) -> None:
    with (
        run_cluster({DESCRIBE: lambda _: answer}, versions={DESCRIBE: version}) as (kafka, _),
        pytest.raises(Fault, match="CLUSTER_AUTHORIZATION_FAILED"),
    ):
        kafka.log_dirs()


def make_move_responder(*codes: int) -> Answer:
    """One error code per partition, in order."""

    def respond(request: Any) -> Any:
        rest = iter(codes)
        topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
        return AlterReplicaLogDirsResponse(
            throttle_time_ms=0,
            results=[
                topic(
                    topic_name=sent.name,
                    partitions=[
                        topic.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=next(rest))
                        for index in sent.partitions
                    ],
                )
                for each in request.dirs
                for sent in each.topics
            ],
        )

    return respond


def test_move_log_dirs_sends_replicas_to_their_brokers() -> None:
    targets = {(ONE, 1): "/a", (TWO, 1): "/b", (ONE, 2): "/c"}
    with run_cluster({MOVE: make_move_responder(0, 57)}, {MOVE: make_move_responder(9)}, {}) as (
        kafka,
        brokers,
    ):
        results = kafka.move_log_dirs(targets)
    sent = [
        {each.path: [(t.name, t.partitions) for t in each.topics] for each in request.dirs}
        for broker in brokers
        for request in broker.list_requests(MOVE)
    ]
    assert sent == [{"/a": [("t", [0])], "/b": [("t", [1])]}, {"/c": [("t", [0])]}]
    assert list(results) == list(targets)
    assert results[ONE, 1] is None
    errors = {replica: (fault.error, fault.kind) for replica, fault in results.items() if fault}
    assert errors == {
        (TWO, 1): ("LOG_DIR_NOT_FOUND", FaultKind.REFUSED),
        (ONE, 2): ("REPLICA_NOT_AVAILABLE", FaultKind.REFUSED),  # remembered, so not retried
    }


def test_move_log_dirs_at_lost_broker_is_unknown() -> None:
    with run_cluster({MOVE: make_move_responder(0)}, {MOVE: lambda _: None}) as (kafka, _):
        results = kafka.move_log_dirs({(ONE, 1): "/a", (ONE, 2): "/c", (ONE, 7): "/d"})
    assert results[ONE, 1] is None
    kinds = {broker: fault.kind for (_, broker), fault in results.items() if fault}
    assert kinds == {2: FaultKind.UNKNOWN, 7: FaultKind.RETRIABLE}


def make_election_response(request: Any, code: int = 0) -> Any:
    topic = ElectLeadersResponse.ReplicaElectionResult
    codes = {0: (84, "not needed"), 1: (80, "not there")}
    return ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=code,
        replica_election_results=[
            topic(
                topic=sent.topic,
                partition_result=[
                    topic.PartitionResult(
                        partition_id=index, error_code=codes[index][0], error_message=codes[index][1]
                    )
                    for index in sent.partitions
                ],
            )
            for sent in request.topic_partitions
        ],
    )


@pytest.mark.parametrize("version", [1, 2])
def test_elect_leaders_requests_preferred_election(version: int) -> None:
    with run_cluster({ELECT: make_election_response}, versions={ELECT: version}) as (kafka, (broker,)):
        results = kafka.elect_leaders([ONE, TWO, ONE])
    (sent,) = broker.list_requests(ELECT)
    assert sent.election_type == 0
    assert [(t.topic, t.partitions) for t in sent.topic_partitions] == [("t", [0, 1])]
    assert results[ONE] is None
    assert str(results[TWO]) == "PREFERRED_LEADER_NOT_AVAILABLE: not there"


def test_elect_leaders_without_permission_is_fault() -> None:
    with (
        run_cluster({ELECT: lambda request: make_election_response(request, 31)}) as (kafka, _),
        pytest.raises(Fault) as raised,
    ):
        kafka.elect_leaders([ONE])
    assert (raised.value.error, raised.value.kind) == ("CLUSTER_AUTHORIZATION_FAILED", FaultKind.REFUSED)


def test_empty_calls_send_no_request() -> None:
    with run_cluster({}) as (kafka, (broker,)):
        assert kafka.elect_leaders([]) == {}
        assert kafka.move_log_dirs({}) == {}
    assert not broker.list_requests(ELECT) + broker.list_requests(MOVE)
