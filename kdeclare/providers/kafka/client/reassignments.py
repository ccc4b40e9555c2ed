"""Start, list and cancel reassignments (KIP-455, KIP-860), and elect preferred leaders (KIP-460)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

from kdeclare.core.live.faults import Fault, Result
from kdeclare.providers.kafka.client.faults import ELECTION_NOT_NEEDED, NONE, build_fault_from_code
from kdeclare.providers.kafka.client.wire import Wire, send_batches
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move

_GUARDED_VERSION = 1
_NO_GUARD_MESSAGE = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
    "the server version"
)
"""The error message that KIP-860 specifies for brokers without the replication factor guard."""


def list_moves(wire: Wire, names: Sequence[str] | None) -> dict[TopicPartition, Move]:
    """Return the in-flight reassignments of these topics, or of all topics. Raises Fault."""
    # A request for some topics must name their partitions. Few reassignments are in flight, so list all.
    request = ListPartitionReassignmentsRequest(timeout_ms=wire.request_timeout_ms, topics=None)
    ongoing = wire.send_one(request, _read_moves)
    if names is None:
        return ongoing
    selected_topics = frozenset(names)
    return {at: move for at, move in ongoing.items() if at.topic in selected_topics}


def _read_moves(response: Any) -> dict[TopicPartition, Move]:
    if response.error_code:
        raise build_fault_from_code(response.error_code, response.error_message, changes=False)
    return {
        TopicPartition(topic.name, partition.partition_index): Move(
            tuple(partition.replicas),
            tuple(partition.adding_replicas),
            tuple(partition.removing_replicas),
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def reassign(
    wire: Wire,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    *,
    allow_replication_factor_change: bool,
    unguarded: bool,
) -> dict[TopicPartition, Result]:
    """Send AlterPartitionReassignments and return a result for each partition. Raises Fault."""
    is_guarded = not allow_replication_factor_change and not unguarded
    if is_guarded and wire.get_max_version(AlterPartitionReassignmentsRequest.API_KEY) < _GUARDED_VERSION:
        return {partition: Fault("UNSUPPORTED_VERSION", _NO_GUARD_MESSAGE) for partition in targets}

    def build_request(batch: list[TopicPartition]) -> Any:
        return AlterPartitionReassignmentsRequest(
            timeout_ms=wire.request_timeout_ms,
            # kafka-python would drop this field in version 0, which does not have it; see min_version
            allow_replication_factor_change=allow_replication_factor_change,
            topics=_build_reassignable_topics({partition: targets[partition] for partition in batch}),
            min_version=_GUARDED_VERSION if is_guarded else None,
        )

    def read_codes(response: Any) -> Iterable[tuple[TopicPartition, int, str | None]]:
        if response.error_code:
            raise build_fault_from_code(response.error_code, response.error_message, changes=True)
        for topic in response.responses:
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.name, partition.partition_index)
                yield topic_partition, partition.error_code, partition.error_message

    return send_batches(
        wire, list(targets), get_key=lambda at: at, build_request=build_request, read_codes=read_codes
    )


def _build_reassignable_topics(targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> list[Any]:
    topic_class = AlterPartitionReassignmentsRequest.ReassignableTopic
    partitions_by_topic: dict[str, list[Any]] = {}
    for (topic, index), replicas in targets.items():
        new_replicas = None if replicas is None else list(replicas)
        partitions_by_topic.setdefault(topic, []).append(
            topic_class.ReassignablePartition(partition_index=index, replicas=new_replicas)
        )
    return [topic_class(name=name, partitions=partitions) for name, partitions in partitions_by_topic.items()]


_PREFERRED = 0
"""The code of the preferred leader election (org.apache.kafka.common.ElectionType)."""


def elect_leaders(wire: Wire, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Result]:
    """Send ElectLeaders and return a result for each partition. Raises Fault."""

    def build_request(batch: list[TopicPartition]) -> Any:
        return ElectLeadersRequest(
            election_type=_PREFERRED,
            topic_partitions=_group_by_topic(batch),
            timeout_ms=wire.request_timeout_ms,
            min_version=1,  # version 0 has no error code for the whole request
        )

    return send_batches(
        wire,
        list(dict.fromkeys(partitions)),
        get_key=lambda at: at,
        build_request=build_request,
        read_codes=_read_election_codes,
    )


def _group_by_topic(partitions: Iterable[TopicPartition]) -> list[Any]:
    indexes_by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes_by_topic.setdefault(topic, []).append(index)
    topic_class = ElectLeadersRequest.TopicPartitions
    return [topic_class(topic=name, partitions=indexes) for name, indexes in indexes_by_topic.items()]


def _read_election_codes(response: Any) -> Iterable[tuple[TopicPartition, int, str | None]]:
    if response.error_code:
        raise build_fault_from_code(response.error_code, None, changes=True)
    for topic in response.replica_election_results:
        for partition in topic.partition_result:
            code = NONE if partition.error_code == ELECTION_NOT_NEEDED else partition.error_code
            yield TopicPartition(topic.topic, partition.partition_id), code, partition.error_message
