"""How many bytes replicas take, from the log directories of the brokers that answered."""

from collections.abc import Mapping, Sequence

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import LogDir


class ReplicaSizes:
    """Bytes by replica (DescribeLogDirs, KIP-113)."""

    def __init__(self, log_dirs: Mapping[int, Sequence[LogDir]]) -> None:
        """log_dirs: by broker; one that is not here did not answer."""
        self._held: dict[int, dict[TopicPartition, int]] = {}
        self._arriving: dict[int, dict[TopicPartition, int]] = {}
        self._in_part: set[int] = set()
        for broker, dirs in log_dirs.items():
            self._held[broker] = {at: size for one in dirs for at, size in one.sizes.items()}
            self._arriving[broker] = {at: size for one in dirs for at, size in one.arriving.items()}
            if any(one.error is not None for one in dirs):
                self._in_part.add(broker)

    def of(self, at: TopicPartition, brokers: Sequence[int]) -> tuple[int | None, ...]:
        """Bytes of one partition's replicas, in the order of ``brokers``; None is not known."""
        return tuple(self._one(at, broker) for broker in brokers)

    def arriving(self, at: TopicPartition, brokers: Sequence[int]) -> int:
        """Bytes of copies that are on their way into another directory of the same brokers."""
        return sum(self._arriving.get(broker, {}).get(at, 0) for broker in brokers)

    def _one(self, at: TopicPartition, broker: int) -> int | None:
        held = self._held.get(broker)
        if held is None:
            return None
        # what is nowhere may be in a directory that is offline; if all are there, it has not begun
        return held.get(at, None if broker in self._in_part else 0)
