"""Moves: AlterPartitionReassignments with the replication-factor guard (KIP-860), and their list."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest

from kdeclare.core.faults import Fault, Result
from kdeclare.providers.kafka.client.batches import send_batches
from kdeclare.providers.kafka.client.faults import fault_for_code
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move

_GUARDED_VERSION = 1
_NO_GUARD = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
    "the server version"
)
"""The wording of KIP-860."""


def moves(wire: Wire, names: Sequence[str] | None) -> dict[TopicPartition, Move]:
    """Ongoing reassignments, of all topics or of those named. Raises Fault."""
    # Always all: a request for topics has to name their partitions, and few are ever moving.
    request = ListPartitionReassignmentsRequest(timeout_ms=wire.request_timeout_ms, topics=None)
    ongoing = wire.ask_one(request, _moves)
    if names is None:
        return ongoing
    wanted = frozenset(names)
    return {at: move for at, move in ongoing.items() if at.topic in wanted}


def _moves(response: Any) -> dict[TopicPartition, Move]:
    if response.error_code:
        raise fault_for_code(response.error_code, response.error_message, changes=False)
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
    """AlterPartitionReassignments, a result for each partition. Raises Fault."""
    guarded = not allow_replication_factor_change and not unguarded
    if guarded and wire.max_version(AlterPartitionReassignmentsRequest.API_KEY) < _GUARDED_VERSION:
        return {partition: Fault("UNSUPPORTED_VERSION", _NO_GUARD) for partition in targets}

    def request(part: list[TopicPartition]) -> Any:
        return AlterPartitionReassignmentsRequest(
            timeout_ms=wire.request_timeout_ms,
            # Version 0 has no such field: kafka-python drops it there, hence min_version.
            allow_replication_factor_change=allow_replication_factor_change,
            topics=_reassignable({partition: targets[partition] for partition in part}),
            min_version=_GUARDED_VERSION if guarded else None,
        )

    def codes(response: Any) -> Iterable[tuple[TopicPartition, int, str | None]]:
        if response.error_code:
            raise fault_for_code(response.error_code, response.error_message, changes=True)
        for topic in response.responses:
            for partition in topic.partitions:
                at = TopicPartition(topic.name, partition.partition_index)
                yield at, partition.error_code, partition.error_message

    return send_batches(wire, list(targets), key=lambda at: at, request=request, codes=codes)


def _reassignable(targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> list[Any]:
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    grouped: dict[str, list[Any]] = {}
    for (topic, index), replicas in targets.items():
        wanted = None if replicas is None else list(replicas)
        grouped.setdefault(topic, []).append(
            kind.ReassignablePartition(partition_index=index, replicas=wanted)
        )
    return [kind(name=name, partitions=partitions) for name, partitions in grouped.items()]
