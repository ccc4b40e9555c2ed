"""Topics and brokers as the controller holds them, and how topics come and go.

After ReplicationControlManager and ClusterControlManager of Apache Kafka. Every method that refuses
raises Fault with Kafka's error name and words, and has then changed nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.port import NewPartitions, NewTopic
from kdeclare.providers.kafka.testing.configs import Configs
from kdeclare.providers.kafka.testing.partitions import Ids, Impossible, PartitionState, elect, place

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
MAX_LENGTH = 249


def find_name_problem(name: str) -> str | None:
    """What is wrong with a topic name, in Kafka's words; None if nothing is."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None


def find_name_collision(name: str, existing: Iterable[str]) -> str | None:
    """Another existing topic whose metrics would have the same name (``.`` and ``_`` are one)."""
    same = name.replace(".", "_")
    if "." not in name and "_" not in name:
        return None
    return next(
        (other for other in sorted(existing) if other != name and other.replace(".", "_") == same), None
    )


@dataclass
class BrokerState:
    """A registered broker; one that is shutting down leads nothing new and joins no in-sync set."""

    id: int
    rack: str | None = None
    fenced: bool = False
    shutting_down: bool = False

    @property
    def active(self) -> bool:
        """Whether it can be in sync."""
        return not (self.fenced or self.shutting_down)


@dataclass
class TopicState:
    """One topic; ``records`` is how many it holds in all."""

    topic_id: str
    partitions: list[PartitionState]
    records: int = 0
    internal: bool = False


@dataclass
class Topics:
    """All topics and brokers."""

    brokers: dict[int, BrokerState]
    configs: Configs
    random: Random
    made: int = 0
    topics: dict[str, TopicState] = field(default_factory=dict)

    @property
    def active(self) -> frozenset[int]:
        """Brokers that can be in sync."""
        return frozenset(b.id for b in self.brokers.values() if b.active)

    # topics

    def create(self, new: NewTopic, existing: Iterable[str], *, validate_only: bool) -> None:
        """CreateTopics for one topic; ``existing`` is what was there before the request."""
        if new.topic == "__cluster_metadata":
            raise Fault("INVALID_REQUEST", f"Creation of internal topic {new.topic} is prohibited.")
        wrong = find_name_problem(new.topic)
        if wrong:
            raise Fault("INVALID_TOPIC_EXCEPTION", wrong)
        other = find_name_collision(new.topic, existing)
        if other:
            raise Fault(
                "INVALID_TOPIC_EXCEPTION", f"Topic '{new.topic}' collides with existing topic: {other}"
            )
        if new.topic in self.topics:
            raise Fault("TOPIC_ALREADY_EXISTS", f"Topic '{new.topic}' already exists.")
        overrides = self.configs.for_new_topic(new.config_texts)
        lists = self._assigned(new) if new.assignments else self._placed(new)
        if validate_only:
            return
        self.made += 1
        partitions = [self._new_partition(replicas) for replicas in lists]
        self.topics[new.topic] = TopicState(str(UUID(int=self.made)), partitions)
        self.configs.store(ConfigResource(ConfigScope.TOPIC, new.topic), overrides)

    def _assigned(self, new: NewTopic) -> list[Ids]:
        given = new.assignments or {}
        for count, what in (
            (new.replication_factor, "replication factor"),
            (new.partitions, "numPartitions"),
        ):
            if count not in (None, -1):
                raise Fault(
                    "INVALID_REQUEST",
                    f"A manual partition assignment was specified, but {what} was not set to -1.",
                )
        if sorted(given) != list(range(len(given))):
            raise Fault(
                "INVALID_REPLICA_ASSIGNMENT", "partitions should be a consecutive 0-based integer sequence"
            )
        size: int | None = None
        lists = []
        for index in range(len(given)):
            self._check_assignment(given[index], size)
            size = len(given[index])
            self._check_active(index, given[index])
            lists.append(tuple(given[index]))
        return lists

    def _placed(self, new: NewTopic) -> list[Ids]:
        factor = -1 if new.replication_factor is None else new.replication_factor
        count = -1 if new.partitions is None else new.partitions
        if factor < -1 or factor == 0:
            raise Fault(
                "INVALID_REPLICATION_FACTOR",
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if count < -1 or count == 0:
            raise Fault(
                "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."
            )
        factor = self._default("default.replication.factor") if factor == -1 else factor
        count = self._default("num.partitions") if count == -1 else count
        return self._place(count, factor)

    def _place(self, count: int, factor: int) -> list[Ids]:
        try:
            return list(place(tuple(self.brokers.values()), count, factor, self.random))
        except Impossible as reason:
            raise Fault(
                "INVALID_REPLICATION_FACTOR", f"Unable to replicate the partition {factor} time(s): {reason}"
            ) from None

    def _default(self, key: str) -> int:
        found = self.configs.static.get(self.configs.asked, {}).get(key)
        return int(found) if found else 1

    def _new_partition(self, replicas: Ids) -> PartitionState:
        isr = tuple(r for r in replicas if r in self.active)
        return elect(PartitionState(replicas, isr, None), self.active)

    def _check_assignment(self, replicas: Sequence[int], size: int | None) -> None:
        """validateManualPartitionAssignment."""
        wrong = ""
        if not replicas:
            wrong = "an empty replica list."
        for number, replica in enumerate(replicas):
            if replica not in self.brokers:
                wrong = wrong or f"broker {replica}, but no such broker is registered."
            elif replica in replicas[:number]:
                wrong = wrong or f"the broker {replica} more than once."
        if not wrong and size is not None and len(replicas) != size:
            wrong = (
                f"a partition with {len(replicas)} replica(s), but this is not consistent with previous "
                f"partitions, which have {size} replica(s)."
            )
        if wrong:
            raise Fault("INVALID_REPLICA_ASSIGNMENT", f"The manual partition assignment includes {wrong}")

    def _check_active(self, partition: int, replicas: Sequence[int]) -> None:
        if not self.active.intersection(replicas):
            raise Fault(
                "INVALID_REPLICA_ASSIGNMENT",
                f"All brokers specified in the manual partition assignment for partition {partition} are "
                "fenced or in controlled shutdown.",
            )

    def delete(self, name: str, topic_id: str | None) -> None:
        """DeleteTopics for one topic, by id or (None) by name: with its configs, for good."""
        if topic_id is not None and (name not in self.topics or self.topics[name].topic_id != topic_id):
            raise Fault("UNKNOWN_TOPIC_ID", "This server does not host this topic ID.")
        if name not in self.topics:
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.")
        del self.topics[name]
        self.configs.store(ConfigResource(ConfigScope.TOPIC, name), {})

    def add_partitions(self, new: NewPartitions, *, validate_only: bool) -> None:
        """CreatePartitions for one topic; the factor is the length of partition 0's list as it is now."""
        topic = self.topics.get(new.topic)
        if topic is None:
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", "")
        have = len(topic.partitions)
        if new.total == have:
            raise Fault("INVALID_PARTITIONS", f"Topic already has {have} partition(s).")
        if new.total < have:
            raise Fault(
                "INVALID_PARTITIONS",
                f"The topic {new.topic} currently has {have} partition(s); {new.total} would not be an "
                "increase.",
            )
        factor = len(topic.partitions[0].replicas)
        if new.assignments is None:
            lists = self._place(new.total - have, factor)
        else:
            lists = self._assigned_additions(new, have, factor)
        if not validate_only:
            topic.partitions.extend(self._new_partition(replicas) for replicas in lists)

    def _assigned_additions(self, new: NewPartitions, have: int, factor: int) -> list[Ids]:
        lists = new.assignments or ()
        if len(lists) != new.total - have:
            raise Fault(
                "INVALID_REPLICA_ASSIGNMENT",
                f"Attempted to add {new.total - have} additional partition(s), but only {len(lists)} "
                "assignment(s) were specified.",
            )
        for index, replicas in enumerate(lists):
            self._check_assignment(replicas, factor)
            self._check_active(have + index, replicas)
        return [tuple(replicas) for replicas in lists]
