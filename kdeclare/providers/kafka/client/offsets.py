"""How much topics hold: ListOffsets at the leaders."""

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, OffsetSpec

from kdeclare.core.faults import Fault
from kdeclare.providers.kafka.client.batches import chunks
from kdeclare.providers.kafka.client.faults import LEADER_NOT_AVAILABLE, fault_for_code
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.topics import topics
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Topic

_PARTITIONS_A_REQUEST = 2000
_CONSUMER = -1
"""The replica id of whoever is no broker."""


def record_counts(wire: Wire, fresh: Freshness, names: Sequence[str]) -> dict[str, int]:
    """Offsets between the start and the end of each topic that exists. Raises Fault."""
    found = topics(wire, fresh, names)
    requests = {}
    for leader, partitions in _by_leader(found).items():
        parts = chunks(partitions, _PARTITIONS_A_REQUEST)
        # The end last: a record that comes in between is counted rather than missed.
        requests[leader] = [
            _request(part, spec, wire) for part in parts for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ]
    counts = dict.fromkeys(found, 0)
    for answers in wire.ask_each(requests, _offsets).values():
        for earliest, latest in zip(answers[::2], answers[1::2], strict=True):
            if isinstance(earliest, Fault):
                raise earliest
            if isinstance(latest, Fault):
                raise latest
            for partition, end in latest.items():
                counts[partition.topic] += max(0, end - earliest[partition])
    return counts


def _by_leader(found: Mapping[str, Topic]) -> dict[int, list[TopicPartition]]:
    led: dict[int, list[TopicPartition]] = {}
    for topic in found.values():
        for index, partition in enumerate(topic.partitions):
            at = TopicPartition(topic.name, index)
            if partition.leader is None:
                raise fault_for_code(LEADER_NOT_AVAILABLE, f"partition {at} has no leader", changes=False)
            led.setdefault(partition.leader, []).append(at)
    return led


def _request(partitions: list[TopicPartition], spec: int, wire: Wire) -> Any:
    kind = ListOffsetsRequest.ListOffsetsTopic
    grouped: dict[str, list[Any]] = {}
    for topic, index in partitions:
        wanted = kind.ListOffsetsPartition(
            partition_index=index, current_leader_epoch=-1, timestamp=int(spec)
        )
        grouped.setdefault(topic, []).append(wanted)
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=0,
        topics=[kind(name=name, partitions=wanted) for name, wanted in grouped.items()],
        timeout_ms=wire.request_timeout_ms,
        min_version=1,  # version 0 answers with lists of segments
    )


def _offsets(response: Any) -> dict[TopicPartition, int]:
    offsets = {}
    for topic in response.topics:
        for partition in topic.partitions:
            at = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                raise fault_for_code(partition.error_code, f"offsets of {at}", changes=False)
            offsets[at] = partition.offset
    return offsets
