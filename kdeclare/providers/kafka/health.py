"""Health checks of Kafka clusters for rollouts of fleets."""

from functools import partial

from kdeclare.core.parts import Connections
from kdeclare.core.provider.health import HealthCheck
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import PartitionCondition, list_conditions


def count_partitions(condition: PartitionCondition, connections: Connections) -> int:
    """Return the number of partitions with a condition, internal topics included. Raises Fault.

    A replica that a reassignment is adding does not count as missing (`list_conditions`).
    """
    cluster = connections.get(KafkaConnection).cluster
    moves = cluster.moves()
    return sum(
        condition in list_conditions(partition, moves.get(TopicPartition(name, number)), None)
        for name, topic in cluster.topics().items()
        for number, partition in enumerate(topic.partitions)
    )


def _make_check(condition: PartitionCondition) -> HealthCheck:
    noun = f"{condition} partition"
    return HealthCheck(f"{condition}-partitions", noun, f"{noun}s", partial(count_partitions, condition))


HEALTH_CHECKS = tuple(map(_make_check, (PartitionCondition.OFFLINE, PartitionCondition.UNDER_REPLICATED)))
