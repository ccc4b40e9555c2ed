"""Why something cannot be placed."""

from kdeclare.providers.kafka.reassignment.placing import PlacementError


class NotEnoughBrokers(PlacementError):
    """A partition cannot have that many replicas.

    replication_factor: what it is to have. usable: ids of the brokers that may get its new replicas.
    topic, partition: the first one that cannot have it.
    """

    def __init__(self, topic: str, partition: int, replication_factor: int, usable: tuple[int, ...]) -> None:
        self.topic = topic
        self.partition = partition
        self.replication_factor = replication_factor
        self.usable = usable
        takers = f"{len(usable)} broker{' can' if len(usable) == 1 else 's can'} take new ones"
        super().__init__(
            f"Partition {partition} of {topic} cannot have {replication_factor} replicas: {takers} "
            f"({', '.join(map(str, usable)) or 'none'})"
        )


class FewerPartitions(PlacementError):
    """A topic cannot lose partitions. ``wanted`` and ``current`` are counts."""

    def __init__(self, topic: str, wanted: int, current: int) -> None:
        self.topic = topic
        self.wanted = wanted
        self.current = current
        super().__init__(f"{topic} has {current} partitions and cannot have {wanted}")
