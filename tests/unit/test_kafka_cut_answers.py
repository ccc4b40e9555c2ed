"""Answers that are cut off after each number of bytes, as when a broker or a connection dies."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from kafka.protocol.admin import (
    AlterPartitionReassignmentsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsResponse,
)

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, NewPartitions
from tests.unit.test_kafka_requests import (
    ALTER,
    CREATE,
    DELETE,
    DESCRIBE,
    GROW,
    REASSIGN,
    make_created_response,
    make_deleted_response,
    make_partitions_response,
    make_topic,
    run_cluster,
)

LIST_MOVES = 46
TOPIC = ConfigResource(ConfigScope.TOPIC, "t")
RETENTION = ConfigAlteration(TOPIC, (ConfigOp("retention.ms", FieldOp.SET, "1000"),))


def make_altered_response(request: Any) -> Any:
    kind = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(
        throttle_time_ms=0,
        responses=[kind(0, None, one.resource_type, one.resource_name) for one in request.resources],
    )


def make_reassigned_response(request: Any) -> Any:
    kind = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    partition = kind.ReassignablePartitionResponse
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        responses=[
            kind(topic.name, [partition(one.partition_index, 0, None) for one in topic.partitions])
            for topic in request.topics
        ],
    )


def make_listed_response(_: Any) -> Any:
    return ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=0, error_message=None, topics=[])


def make_configs_response(request: Any) -> Any:
    kind = DescribeConfigsResponse.DescribeConfigsResult
    entry = kind.DescribeConfigsResourceResult(
        name="retention.ms", value="1000", read_only=False, config_source=1, is_sensitive=False, synonyms=[]
    )
    results = [kind(0, None, one.resource_type, one.resource_name, [entry]) for one in request.resources]
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)


Call = Callable[[KafkaCluster], object]

CHANGES: Mapping[str, tuple[int, Callable[[Any], Any], Call]] = {
    "create": (CREATE, make_created_response, lambda kafka: kafka.create_topics([make_topic("t")])),
    "delete": (DELETE, make_deleted_response, lambda kafka: kafka.delete_topics({"t": None})),
    "grow": (
        GROW,
        make_partitions_response,
        lambda kafka: kafka.create_partitions([NewPartitions("t", 2, None)]),
    ),
    "alter": (ALTER, make_altered_response, lambda kafka: kafka.alter_configs([RETENTION])),
    "reassign": (
        REASSIGN,
        make_reassigned_response,
        lambda kafka: kafka.reassign({TopicPartition("t", 0): (1,)}, allow_replication_factor_change=False),
    ),
}
READS: Mapping[str, tuple[int, Callable[[Any], Any], Call]] = {
    "configs": (
        DESCRIBE,
        make_configs_response,
        lambda kafka: kafka.configs([ConfigQuery(TOPIC, frozenset({"retention.ms"}), overrides=True)]),
    ),
    "moves": (LIST_MOVES, make_listed_response, lambda kafka: kafka.moves()),
}


def measure_answer(api: int, respond: Callable[[Any], Any], call: Call) -> int:
    """Return the length of the whole answer, which the call must understand."""
    lengths: list[int] = []

    def count(request: Any) -> Any:
        answer = respond(request)
        answer.API_VERSION = request.API_VERSION
        answer.with_header(correlation_id=0)
        lengths.append(len(answer.encode(header=True, framed=True)))
        return respond(request)

    with run_cluster({api: count}) as (kafka, _):
        assert not has_fault(call(kafka))
    return lengths[0]


def has_fault(results: object) -> bool:
    values = results.values() if isinstance(results, Mapping) else ()
    return any(isinstance(value, Fault) for value in values)


def find_fault(call: Call, kafka: KafkaCluster) -> Fault:
    """Return the fault that a call raises, or that it returns for its only item."""
    try:
        results = call(kafka)
    except Fault as fault:
        return fault
    assert isinstance(results, Mapping)
    (result,) = results.values()
    assert isinstance(result, Fault)
    return result


def cut_answer(respond: Callable[[Any], Any], length: int, request: Any) -> tuple[Any, int]:
    return respond(request), length


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_change_whose_answer_is_cut_is_unknown_and_not_repeated(name: str) -> None:
    api, respond, call = CHANGES[name]
    for length in range(measure_answer(api, respond, call)):
        with run_cluster({api: partial(cut_answer, respond, length)}) as (kafka, broker):
            fault = find_fault(call, kafka)
        assert (fault.kind, fault.error) == (FaultKind.UNKNOWN, "NETWORK_EXCEPTION"), length
        assert len(broker.list_requests(api)) == 1


@pytest.mark.parametrize("name", READS)
def test_read_whose_answer_is_cut_is_retriable(name: str) -> None:
    api, respond, call = READS[name]
    for length in range(measure_answer(api, respond, call)):
        with run_cluster({api: partial(cut_answer, respond, length)}) as (kafka, _):
            assert find_fault(call, kafka).kind is FaultKind.RETRIABLE, length
