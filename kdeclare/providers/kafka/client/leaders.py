"""Elections of preferred leaders: ElectLeaders (KIP-460)."""

from collections.abc import Iterable, Sequence
from typing import Any

from kafka.protocol.admin import ElectLeadersRequest

from kdeclare.core.faults import Result
from kdeclare.providers.kafka.client.batches import send_batches
from kdeclare.providers.kafka.client.faults import ELECTION_NOT_NEEDED, NONE, fault_for_code
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.ids import TopicPartition

_PREFERRED = 0
"""org.apache.kafka.common.ElectionType"""


def elect_leaders(wire: Wire, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Result]:
    """ElectLeaders, a result for each partition. Raises Fault."""

    def request(part: list[TopicPartition]) -> Any:
        return ElectLeadersRequest(
            election_type=_PREFERRED,
            topic_partitions=_by_topic(part),
            timeout_ms=wire.request_timeout_ms,
            min_version=1,  # version 0 has no code for the whole request
        )

    return send_batches(
        wire, list(dict.fromkeys(partitions)), key=lambda at: at, request=request, codes=_codes
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[Any]:
    grouped: dict[str, list[int]] = {}
    for topic, index in partitions:
        grouped.setdefault(topic, []).append(index)
    kind = ElectLeadersRequest.TopicPartitions
    return [kind(topic=name, partitions=indexes) for name, indexes in grouped.items()]


def _codes(response: Any) -> Iterable[tuple[TopicPartition, int, str | None]]:
    if response.error_code:
        raise fault_for_code(response.error_code, None, changes=True)
    for topic in response.replica_election_results:
        for partition in topic.partition_result:
            code = NONE if partition.error_code == ELECTION_NOT_NEEDED else partition.error_code
            yield TopicPartition(topic.topic, partition.partition_id), code, partition.error_message
