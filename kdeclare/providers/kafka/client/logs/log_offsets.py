"""Read the offsets of logs from partition leaders (ListOffsets), and count records with these offsets."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from kafka.protocol.consumer.offsets import ListOffsetsRequest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client.faults import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    build_fault_from_code,
    get_error_name,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.topics import describe_topics, read_unknown_topics
from kdeclare.providers.kafka.client.wire import Wire, batch_items
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import NO_TOPICS, Topic
from kdeclare.providers.kafka.request_values import EARLIEST, LATEST, MAX_TIMESTAMP, LogPosition

_PARTITIONS_PER_REQUEST = 2000
_MAX_TIMESTAMP_VERSION = 7
_LAST_VERSION_WITHOUT_TAGS = 5
"""The last version without tagged fields (KIP-482). Its requests take half the time to encode.

Later versions only add times, and a timeout for offsets that brokers look up in remote storage.
"""
_CONSUMER_REPLICA_ID = -1
"""The replica id that clients send in ListOffsets requests, because they are not brokers."""
_LEADER_WAIT_S = 5.0
"""How long one call waits for partition leaders, in seconds. `RetryingCluster` repeats the call."""
_FIRST_POLL_S = 0.05
_MAX_POLL_S = 0.5

_MISSING = Fault("INCOMPLETE_RESPONSE", "a broker did not respond for every partition", FaultKind.RETRIABLE)
_UNKNOWN_TOPIC = get_error_name(UNKNOWN_TOPIC_OR_PARTITION)
Found = TypeVar("Found")
_ReadResult = Callable[[Any], Found]
"""A function that reads the result from the response for one partition."""


def count_records(wire: Wire, freshness: Freshness, names: Sequence[str]) -> dict[str, int]:
    """Count the records of each topic that exists. Raises Fault."""
    counts: dict[str, int] = {}
    # The end offset is requested last, so that records written between the requests are counted.
    for partition, (start, end) in list_log_offsets(wire, freshness, names, (EARLIEST, LATEST)).items():
        counts[partition.topic] = counts.get(partition.topic, 0) + max(0, end - start)
    return counts


def find_last_writes(
    wire: Wire, freshness: Freshness, names: Sequence[str]
) -> dict[TopicPartition, int | None]:
    """Return the latest timestamp in each partition of the topics that exist. Raises Fault."""
    times = dict.fromkeys(names, (MAX_TIMESTAMP,))
    found = _ask_until_led(wire, freshness, times, _read_timestamp, NO_TOPICS)
    return {where: at if at >= 0 else None for where, (at,) in found.items()}


def list_log_offsets(
    wire: Wire, freshness: Freshness, names: Sequence[str], times: Sequence[int]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the offsets at ``times`` for each partition of the topics that exist. Raises Fault."""
    return _ask_until_led(wire, freshness, dict.fromkeys(names, times), _read_offset, NO_TOPICS)


def list_log_positions(
    wire: Wire, freshness: Freshness, times: Mapping[str, Sequence[int]], known: Mapping[str, Topic]
) -> dict[TopicPartition, tuple[LogPosition, ...]]:
    """Return the offsets at the times of each topic, with the timestamps of the records at these offsets.

    known: topics that were read shortly before. Raises Fault.
    """
    return _ask_until_led(wire, freshness, times, _read_position, known)


def _read_offset(partition: Any) -> int:
    offset: int = partition.offset
    return offset


def _read_timestamp(partition: Any) -> int:
    timestamp_ms: int = partition.timestamp
    return timestamp_ms


def _read_position(partition: Any) -> LogPosition:
    return LogPosition(partition.offset, partition.timestamp)


def _ask_until_led(
    wire: Wire,
    freshness: Freshness,
    times: Mapping[str, Sequence[int]],
    read: _ReadResult[Found],
    known: Mapping[str, Topic],
) -> dict[TopicPartition, tuple[Found, ...]]:
    """Send ListOffsets until each partition has a leader. Return one result for each partition and time.

    times: the times for each topic. known: topics whose leaders are already known.

    Metadata can name the leader of a new partition before that broker has become the leader. After the
    creation of hundreds of partitions, it can take several seconds until every partition has its leader.
    Requests for such partitions are repeated with refreshed metadata, as in Kafka's Admin client
    (PartitionLeaderStrategy).
    """
    topics_by_name = read_unknown_topics(wire, freshness, times, known)
    pending = [
        TopicPartition(topic.name, index)
        for topic in topics_by_name.values()
        for index in range(len(topic.partitions))
    ]
    answers = (_ask_known_leaders if known else _ask_leaders)(wire, topics_by_name, pending, times, read)
    found: dict[TopicPartition, tuple[Found, ...]] = {}
    deadline = time.monotonic() + _LEADER_WAIT_S
    poll_s = _FIRST_POLL_S
    while True:
        faults = {where: answer for where, answer in answers.items() if isinstance(answer, Fault)}
        found |= {where: answer for where, answer in answers.items() if not isinstance(answer, Fault)}
        if not faults:
            return found
        if time.monotonic() > deadline:
            raise next(iter(faults.values()))
        time.sleep(poll_s)
        poll_s = min(_MAX_POLL_S, 2 * poll_s)
        pending_names = sorted({where.topic for where in faults})
        topics_by_name = describe_topics(wire, freshness, pending_names)
        deleted = set(pending_names) - topics_by_name.keys()
        found = {where: offsets for where, offsets in found.items() if where.topic not in deleted}
        pending = [where for where in faults if _exists(where, topics_by_name)]
        answers = _ask_leaders(wire, topics_by_name, pending, times, read)


def _exists(where: TopicPartition, topics_by_name: Mapping[str, Topic]) -> bool:
    """Whether the partition exists. A topic can be re-created with fewer partitions."""
    topic = topics_by_name.get(where.topic)
    return topic is not None and where.partition < len(topic.partitions)


def _ask_known_leaders(
    wire: Wire,
    topics_by_name: Mapping[str, Topic],
    partitions: Sequence[TopicPartition],
    times: Mapping[str, Sequence[int]],
    read: _ReadResult[Found],
) -> dict[TopicPartition, tuple[Found, ...] | Fault]:
    """Do the same as `_ask_leaders`, but if a whole request fails, return the Fault for each partition.

    The leader may be down because another broker has become the leader.
    """
    try:
        return _ask_leaders(wire, topics_by_name, partitions, times, read)
    except Fault as fault:
        if fault.kind is not FaultKind.RETRIABLE:
            raise
        return dict.fromkeys(partitions, fault)


def _ask_leaders(
    wire: Wire,
    topics_by_name: Mapping[str, Topic],
    partitions: Iterable[TopicPartition],
    times: Mapping[str, Sequence[int]],
    read: _ReadResult[Found],
) -> dict[TopicPartition, tuple[Found, ...] | Fault]:
    """Send ListOffsets once. Return the results of each partition, or a Fault that can be retried.

    Raises Fault for permanent errors.
    """
    results: dict[TopicPartition, tuple[Found, ...] | Fault] = {}
    partitions_by_leader: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = topics_by_name[partition.topic].partitions[partition.partition].leader
        if leader is None:
            results[partition] = build_fault_from_code(
                LEADER_NOT_AVAILABLE, f"partition {partition} has no leader", changes=False
            )
        else:
            partitions_by_leader.setdefault(leader, []).append(partition)
    requests = {
        leader: [
            request
            for batch in batch_items(led_partitions, _PARTITIONS_PER_REQUEST)
            for request in _build_offsets_requests(batch, times, wire)
        ]
        for leader, led_partitions in partitions_by_leader.items()
    }
    answers_by_leader = wire.send_each(requests, partial(_read_results, read=read))
    asked = list(chain.from_iterable(partitions_by_leader.values()))
    return results | _join_times(asked, times, chain.from_iterable(answers_by_leader.values()))


def _join_times(
    partitions: Iterable[TopicPartition],
    times: Mapping[str, Sequence[int]],
    answers: Iterable[Mapping[TopicPartition, Found | Fault] | Fault],
) -> dict[TopicPartition, tuple[Found, ...] | Fault]:
    """Collect the results of each partition. Each response contains the results for one of the times."""
    results_by_partition: dict[TopicPartition, list[Found]] = defaultdict(list)
    faults: dict[TopicPartition, Fault] = {}
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        for partition, result in answer.items():
            if isinstance(result, Fault):
                faults.setdefault(partition, result)
            else:
                results_by_partition[partition].append(result)
    joined: dict[TopicPartition, tuple[Found, ...] | Fault] = {}
    for partition in partitions:
        results = tuple(results_by_partition[partition])
        is_complete = len(results) == len(times[partition.topic])
        joined[partition] = faults.get(partition) or (results if is_complete else _MISSING)
    return joined


def _build_offsets_requests(
    partitions: Sequence[TopicPartition], times: Mapping[str, Sequence[int]], wire: Wire
) -> Iterator[Any]:
    """Yield one request with the first time of each topic, one with the second time, and so on."""
    partitions_by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        partitions_by_topic.setdefault(topic, []).append(index)
    for position in range(max(len(times[name]) for name in partitions_by_topic)):
        time_by_topic = {
            name: times[name][position] for name in partitions_by_topic if position < len(times[name])
        }
        yield _build_offsets_request(partitions_by_topic, time_by_topic, wire)


def _build_offsets_request(
    partitions_by_topic: Mapping[str, Sequence[int]], time_by_topic: Mapping[str, int], wire: Wire
) -> Any:
    times = set(time_by_topic.values())
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    partition_class = topic_class.ListOffsetsPartition
    topic_items = [
        topic_class(
            name=name,
            partitions=[
                partition_class(partition_index=index, current_leader_epoch=-1, timestamp=at)
                for index in partitions_by_topic[name]
            ],
        )
        for name, at in time_by_topic.items()
    ]
    return ListOffsetsRequest(
        replica_id=_CONSUMER_REPLICA_ID,
        isolation_level=0,
        topics=topic_items,
        timeout_ms=wire.request_timeout_ms,
        # version 0 returns lists of segments
        min_version=_MAX_TIMESTAMP_VERSION if MAX_TIMESTAMP in times else 1,
        max_version=_LAST_VERSION_WITHOUT_TAGS if times <= {EARLIEST, LATEST} else None,
    )


def _read_results(response: Any, read: _ReadResult[Found]) -> Mapping[TopicPartition, Found | Fault]:
    """Return the result of each partition, or a Fault that can be retried.

    Raises Fault for permanent errors.
    """
    results: dict[TopicPartition, Found | Fault] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            results[topic_partition] = read(partition)
            if partition.error_code:
                fault = build_fault_from_code(
                    partition.error_code, f"offsets of {topic_partition}", changes=False
                )
                # the topic is in the metadata, so retry if the leader does not know it yet
                if fault.kind is not FaultKind.RETRIABLE and fault.error != _UNKNOWN_TOPIC:
                    raise fault
                results[topic_partition] = fault
    return results
