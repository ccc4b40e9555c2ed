"""Health checks of Kafka clusters for rollouts of fleets."""

from collections.abc import Mapping
from functools import partial

from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.provider.health import HealthCheck
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import UNAVAILABLE
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move, PartitionCondition, list_conditions


def count_partitions(condition: PartitionCondition, connections: Connections) -> int:
    """Return the number of partitions with a condition, internal topics included. Raises Fault.

    A replica that a reassignment is adding does not count as missing (`list_conditions`).
    """
    cluster = connections.get(KafkaConnection).cluster
    moves: Mapping[TopicPartition, Move] = {}
    try:
        moves = cluster.moves()
    except Fault as fault:
        if fault.error not in UNAVAILABLE:
            raise  # otherwise, a replica that is being added counts as missing
    return sum(
        condition in list_conditions(partition, moves.get(TopicPartition(name, number)), None)
        for name, topic in cluster.topics().items()
        for number, partition in enumerate(topic.partitions)
    )


def _make_check(condition: PartitionCondition) -> HealthCheck:
    noun = f"{condition} partition"
    return HealthCheck(f"{condition}-partitions", noun, f"{noun}s", partial(count_partitions, condition))


HEALTH_CHECKS = tuple(map(_make_check, (PartitionCondition.OFFLINE, PartitionCondition.UNDER_REPLICATED)))
