"""Offsets of logs whose leaders have not taken over yet, and the count of their records, at a fake broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.client.logs import log_offsets
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Partition, Topic
from tests.fake_broker import FakeBroker, fake_broker

LIST_OFFSETS, METADATA = 2, 3
UNKNOWN_TOPIC, NOT_LEADER, FORBIDDEN = 3, 6, 29
EARLIEST, LATEST = -2, -1


@dataclass
class Leaders:
    """Two topics of two partitions with offsets 5 to 9, and a partition with an error for some requests.

    error: the error of partition ``late-1`` for the first ``times`` requests. leaderless: how often metadata
    shows it without a leader. deleted: whether topic ``late`` is gone after that. omitted: how many responses
    leave this partition out. shrunk_to: the number of partitions of each topic. versions: the versions of the
    requests. described: the topics of each request for the metadata of topics.
    """

    error: int = 0
    times: int = 0
    leaderless: int = 0
    deleted: bool = False
    omitted: int = 0
    asked: list[list[str]] = field(default_factory=list)
    shrunk_to: int = 2
    versions: list[int] = field(default_factory=list)
    described: list[list[str]] = field(default_factory=list)

    def offsets(self, request: Any) -> Any:
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        self.versions.append(request.API_VERSION)
        self.asked.append([f"{t.name}-{p.partition_index}" for t in request.topics for p in t.partitions])
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                is_late = (topic.name, partition.partition_index) == ("late", 1)
                if is_late and self.omitted > 0:
                    self.omitted -= 1
                    continue
                failing = is_late and self.times > 0
                missing = partition.partition_index >= self.shrunk_to
                end = 9 if partition.timestamp == LATEST else 5
                self.times -= failing
                partitions.append(
                    kind.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=UNKNOWN_TOPIC if missing else self.error if failing else 0,
                        timestamp=-1,
                        offset=-1 if failing else end,
                        leader_epoch=0,
                    )
                )
            topics.append(kind(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


@contextmanager
def run_cluster(leaders: Leaders, newest: int = 5) -> Iterator[tuple[KafkaCluster, FakeBroker]]:
    """newest: the newest version of ListOffsets that the broker supports."""
    with fake_broker({LIST_OFFSETS: leaders.offsets}, {LIST_OFFSETS: newest, METADATA: 12}) as broker:
        usual = broker.metadata

        def respond_metadata(request: Any) -> Any:
            response = usual(request)
            if request.topics:
                leaders.described.append([topic.name for topic in request.topics])
            for topic in request.topics or ():
                gone = leaders.deleted and topic.name == "late" and len(leaders.asked) > 0
                response.topics.append(make_topic_metadata(topic.name, leaders, gone))
            return response

        broker._answers[METADATA] = respond_metadata
        made = connect(broker.bootstrap, {})
        try:
            yield made, broker
        finally:
            made.close()


def make_topic_metadata(name: str, leaders: Leaders, gone: bool) -> Any:
    kind = MetadataResponse.MetadataResponseTopic
    partitions = []
    for index in range(0 if gone else leaders.shrunk_to):
        leaderless = (name, index) == ("late", 1) and leaders.leaderless > 0
        leaders.leaderless -= leaderless
        partitions.append(
            kind.MetadataResponsePartition(
                error_code=5 if leaderless else 0,
                partition_index=index,
                leader_id=-1 if leaderless else 1,
                leader_epoch=0,
                replica_nodes=[1],
                isr_nodes=[1],
                offline_replicas=[],
            )
        )
    return kind(
        error_code=UNKNOWN_TOPIC if gone else 0,
        name=name,
        topic_id=UUID(int=7),
        is_internal=False,
        partitions=partitions,
    )


@pytest.mark.parametrize("error", [NOT_LEADER, UNKNOWN_TOPIC])
def test_record_counts_retry_only_partitions_of_late_leaders(error: int) -> None:
    leaders = Leaders(error, times=4)
    with run_cluster(leaders) as (kafka, _):
        assert kafka.record_counts(["late", "ready"]) == {"late": 8, "ready": 8}
    every = ["late-0", "late-1", "ready-0", "ready-1"]
    assert leaders.asked == [every, every, *[["late-1"]] * 4]


def test_record_counts_wait_for_partition_leader() -> None:
    leaders = Leaders(leaderless=2)
    with run_cluster(leaders) as (kafka, _):
        assert kafka.record_counts(["late"]) == {"late": 8}
    assert leaders.asked == [["late-0"], ["late-0"], ["late-1"], ["late-1"]]


def test_record_counts_omit_deleted_topic() -> None:
    with run_cluster(Leaders(UNKNOWN_TOPIC, times=100, deleted=True)) as (kafka, _):
        assert kafka.record_counts(["late", "ready"]) == {"ready": 8}


def test_record_counts_fail_if_leader_never_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_offsets, "_LEADER_WAIT_S", 0.2)
    with run_cluster(Leaders(NOT_LEADER, times=10_000)) as (kafka, _), pytest.raises(Fault) as caught:
        kafka.record_counts(["late"])
    assert (caught.value.error, caught.value.kind) == ("NOT_LEADER_OR_FOLLOWER", FaultKind.RETRIABLE)
    assert caught.value.message == "offsets of late-1"


def test_record_counts_fail_at_once_on_permanent_fault() -> None:
    leaders = Leaders(FORBIDDEN, times=10_000)
    with run_cluster(leaders) as (kafka, _), pytest.raises(Fault) as caught:
        kafka.record_counts(["late"])
    assert caught.value.error == "TOPIC_AUTHORIZATION_FAILED"
    assert len(leaders.asked) == 2


def test_list_offsets_returns_offset_for_each_time() -> None:
    leaders = Leaders(NOT_LEADER, times=1)
    with run_cluster(leaders) as (kafka, _):
        offsets = kafka.list_offsets(["late"], [LATEST, EARLIEST, 1000])
    assert offsets == {TopicPartition("late", 0): (9, 5, 5), TopicPartition("late", 1): (9, 5, 5)}
    assert leaders.asked == [["late-0", "late-1"]] * 3 + [["late-1"]] * 3


def test_positions_of_topics_with_different_times_share_requests() -> None:
    leaders = Leaders()
    with run_cluster(leaders) as (kafka, _):
        positions = kafka.list_positions({"late": [EARLIEST, 1000, LATEST], "ready": [LATEST]})
    assert {where: [found.offset for found in items] for where, items in positions.items()} == {
        TopicPartition("late", 0): [5, 5, 9],
        TopicPartition("late", 1): [5, 5, 9],
        TopicPartition("ready", 0): [9],
        TopicPartition("ready", 1): [9],
    }
    late = ["late-0", "late-1"]
    assert leaders.asked == [[*late, "ready-0", "ready-1"], late, late]


def test_positions_of_known_topics_need_no_metadata() -> None:
    topic = Topic("ready", "", (Partition((1,), 1, (1,)),) * 2, internal=False)
    leaders = Leaders(NOT_LEADER, times=1)
    with run_cluster(leaders) as (kafka, _):
        kafka.list_positions({"ready": [EARLIEST, LATEST]}, known={"ready": topic})
        assert leaders.described == []
        kafka.list_positions({"ready": [LATEST], "late": [LATEST]}, known={"ready": topic})
        kafka.list_positions({"late": [LATEST]}, known={"late": replace(topic, name="late")})
    assert leaders.described == [["late"], ["late"]]


def test_known_topic_that_was_created_again_with_fewer_partitions_is_read() -> None:
    topic = Topic("ready", "", (Partition((1,), 1, (1,)),) * 2, internal=False)
    with run_cluster(Leaders(shrunk_to=1)) as (kafka, _):
        positions = kafka.list_positions({"ready": [LATEST]}, known={"ready": topic})
    assert set(positions) == {TopicPartition("ready", 0)}


def test_first_and_last_offsets_are_requested_without_tagged_fields() -> None:
    leaders = Leaders()
    with run_cluster(leaders, newest=11) as (kafka, _):
        kafka.list_offsets(["ready"], [EARLIEST, LATEST])
        kafka.list_offsets(["ready"], [1000])
        kafka.find_last_writes(["ready"])
    assert leaders.versions == [5, 5, 11, 11]


def test_offsets_missing_from_response_are_read_again() -> None:
    leaders = Leaders(omitted=1)
    with run_cluster(leaders) as (kafka, _):
        assert kafka.record_counts(["late"]) == {"late": 8}
    assert leaders.asked == [["late-0", "late-1"]] * 2 + [["late-1"]] * 2


def test_offsets_missing_from_every_response_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_offsets, "_LEADER_WAIT_S", 0.2)
    with run_cluster(Leaders(omitted=10_000)) as (kafka, _), pytest.raises(Fault) as caught:
        kafka.record_counts(["late"])
    assert (caught.value.error, caught.value.kind) == ("INCOMPLETE_RESPONSE", FaultKind.RETRIABLE)
