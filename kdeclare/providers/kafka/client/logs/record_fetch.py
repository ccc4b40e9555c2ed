"""Fetch records from partition leaders, to find out whether they have keys and how large batches are.

The requests belong to no group and no fetch session, and commit no offsets. The records are dropped as soon
as their batches are decoded.
"""

from collections.abc import Mapping
from typing import Any

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.client.decoding.fetched_records import (
    FETCH_VERSIONS,
    FetchedRecords,
    RawFetchRequest,
    decode_fetched_records,
)
from kdeclare.providers.kafka.client.decoding.record_batches import decode_batches
from kdeclare.providers.kafka.client.faults import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    build_fault_from_code,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.topics import describe_topics
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.request_values import RecordBatch

_VERSION = max(FETCH_VERSIONS)
"""The last Fetch version that identifies topics by name, not by id. Brokers support it since Kafka 2.7."""
_MAX_WAIT_MS = 500
"""How long a leader can take to read records from remote storage (KIP-405), in milliseconds.

Reads from local storage do not wait.
"""
_NO_SESSION = -1

NO_RECORDS = "NO_RECORDS"
"""kdeclare's own error name for a response that has no records although the requested records exist."""

_Batches = tuple[RecordBatch, ...]


def fetch_batches(
    wire: Wire,
    freshness: Freshness,
    positions: Mapping[TopicPartition, int],
    max_bytes: int,
    max_records: int,
) -> dict[TopicPartition, _Batches | Fault]:
    """Return the record batches of each partition, starting at an offset, or why they could not be read.

    The parameters are those of `Cluster.fetch_batches`. Each partition has a request of its own, because
    leaders return a batch that is larger than the limit only for the first partition of a request. Raises
    Fault.
    """
    topics = describe_topics(wire, freshness, sorted({where.topic for where in positions}))
    results: dict[TopicPartition, _Batches | Fault] = {}
    partitions_by_leader: dict[int, list[TopicPartition]] = {}
    for where in positions:
        leader = _find_leader(topics, where)
        if isinstance(leader, Fault):
            results[where] = leader
        else:
            partitions_by_leader.setdefault(leader, []).append(where)
    requests = {
        leader: [_build_request(where, positions[where], max_bytes) for where in partitions]
        for leader, partitions in partitions_by_leader.items()
    }
    for leader, answers in wire.send_each(requests, decode_fetched_records).items():
        for where, answer in zip(partitions_by_leader[leader], answers, strict=True):
            results[where] = (
                answer
                if isinstance(answer, Fault)
                else _read_batches(answer, where, positions[where], max_records)
            )
    return results


def _find_leader(topics: Mapping[str, Topic], where: TopicPartition) -> int | Fault:
    topic = topics.get(where.topic)
    if topic is None or where.partition >= len(topic.partitions):
        return build_fault_from_code(UNKNOWN_TOPIC_OR_PARTITION, f"records of {where}", changes=False)
    leader = topic.partitions[where.partition].leader
    if leader is None:
        return build_fault_from_code(LEADER_NOT_AVAILABLE, f"partition {where} has no leader", changes=False)
    return leader


def _build_request(where: TopicPartition, offset: int, max_bytes: int) -> Any:
    topic_class = RawFetchRequest.FetchTopic
    partition = topic_class.FetchPartition(
        partition=where.partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=max_bytes,
    )
    return RawFetchRequest(
        replica_id=-1,
        max_wait_ms=_MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=_NO_SESSION,
        topics=[topic_class(topic=where.topic, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
        min_version=_VERSION,
        max_version=_VERSION,
    )


def _read_batches(
    fetched: FetchedRecords, where: TopicPartition, offset: int, max_records: int
) -> _Batches | Fault:
    if fetched.error_code:
        return build_fault_from_code(fetched.error_code, f"records of {where}", changes=False)
    if not fetched.records and offset < fetched.high_watermark:
        return Fault(NO_RECORDS, "the leader sent no records, for example because of a quota of this client")
    return decode_batches(fetched.records, max_records)
