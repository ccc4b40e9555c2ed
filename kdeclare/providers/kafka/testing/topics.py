"""The topics and brokers of the controller, and the creation and deletion of topics.

Modeled on ReplicationControlManager and ClusterControlManager of Apache Kafka. Methods that reject a request
raise Fault with Kafka's error name and message, without changing anything.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.providers.kafka.testing.configs import ConfigStore
from kdeclare.providers.kafka.testing.partitions import (
    Ids,
    PartitionState,
    PlacementError,
    elect_leader,
    place_replicas,
)

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
MAX_LENGTH = 249


def find_name_problem(name: str) -> str | None:
    """Return Kafka's error message about an invalid topic name; None if the name is valid."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_LENGTH}"
        )
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None


def find_name_collision(name: str, existing: Iterable[str]) -> str | None:
    """Return an existing topic whose metric names collide with those of ``name``; None if no name collides.

    Metric names do not distinguish ``.`` and ``_``.
    """
    normalized = name.replace(".", "_")
    if "." not in name and "_" not in name:
        return None
    return next(
        (other for other in sorted(existing) if other != name and other.replace(".", "_") == normalized), None
    )


@dataclass
class BrokerState:
    """A registered broker. While it shuts down, it cannot become a leader or join an ISR."""

    id: int
    rack: str | None = None
    fenced: bool = False
    shutting_down: bool = False

    @property
    def active(self) -> bool:
        """Whether replicas on the broker can be in sync."""
        return not (self.fenced or self.shutting_down)


@dataclass
class TopicState:
    """One topic. ``records`` is the total number of records in the topic."""

    topic_id: str
    partitions: list[PartitionState]
    records: int = 0
    internal: bool = False


@dataclass
class TopicStore:
    """The topics and brokers of the in-memory cluster."""

    brokers: dict[int, BrokerState]
    configs: ConfigStore
    random: Random
    made: int = 0
    topics: dict[str, TopicState] = field(default_factory=dict)

    @property
    def active(self) -> frozenset[int]:
        """The brokers whose replicas can be in sync."""
        return frozenset(b.id for b in self.brokers.values() if b.active)

    # topics

    def create(self, new: NewTopic, existing: Iterable[str], *, validate_only: bool) -> None:
        """Handle CreateTopics for one topic. existing: the topics that existed before the request."""
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
        overrides = self.configs.build_topic_overrides(new.config_texts)
        lists = self._resolve_assignments(new) if new.assignments else self._place_new_topic(new)
        if validate_only:
            return
        self.made += 1
        partitions = [self._build_partition(replicas) for replicas in lists]
        self.topics[new.topic] = TopicState(str(UUID(int=self.made)), partitions)
        self.configs.store(ConfigResource(ConfigScope.TOPIC, new.topic), overrides)

    def _resolve_assignments(self, new_topic: NewTopic) -> list[Ids]:
        assignments = new_topic.assignments or {}
        for count, field_name in (
            (new_topic.replication_factor, "replication factor"),
            (new_topic.partitions, "numPartitions"),
        ):
            if count not in (None, -1):
                raise Fault(
                    "INVALID_REQUEST",
                    f"A manual partition assignment was specified, but {field_name} was not set to -1.",
                )
        if sorted(assignments) != list(range(len(assignments))):
            raise Fault(
                "INVALID_REPLICA_ASSIGNMENT", "partitions should be a consecutive 0-based integer sequence"
            )
        size: int | None = None
        replica_lists = []
        for index in range(len(assignments)):
            self._validate_assignment(assignments[index], size)
            size = len(assignments[index])
            self._validate_active(index, assignments[index])
            replica_lists.append(tuple(assignments[index]))
        return replica_lists

    def _place_new_topic(self, new_topic: NewTopic) -> list[Ids]:
        factor = -1 if new_topic.replication_factor is None else new_topic.replication_factor
        count = -1 if new_topic.partitions is None else new_topic.partitions
        if factor < -1 or factor == 0:
            raise Fault(
                "INVALID_REPLICATION_FACTOR",
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if count < -1 or count == 0:
            raise Fault(
                "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."
            )
        factor = self._get_default("default.replication.factor") if factor == -1 else factor
        count = self._get_default("num.partitions") if count == -1 else count
        return self._place_replicas(count, factor)

    def _place_replicas(self, count: int, factor: int) -> list[Ids]:
        try:
            return list(place_replicas(tuple(self.brokers.values()), count, factor, self.random))
        except PlacementError as error:
            raise Fault(
                "INVALID_REPLICATION_FACTOR", f"Unable to replicate the partition {factor} time(s): {error}"
            ) from None

    def _get_default(self, key: str) -> int:
        text = self.configs.static.get(self.configs.asked, {}).get(key)
        return int(text) if text else 1

    def _build_partition(self, replicas: Ids) -> PartitionState:
        isr = tuple(r for r in replicas if r in self.active)
        return elect_leader(PartitionState(replicas, isr, None), self.active)

    def _validate_assignment(self, replicas: Sequence[int], size: int | None) -> None:
        """Validate replicas as validateManualPartitionAssignment does. Raises Fault."""
        problem = ""
        if not replicas:
            problem = "an empty replica list."
        for number, replica in enumerate(replicas):
            if replica not in self.brokers:
                problem = problem or f"broker {replica}, but no such broker is registered."
            elif replica in replicas[:number]:
                problem = problem or f"the broker {replica} more than once."
        if not problem and size is not None and len(replicas) != size:
            problem = (
                f"a partition with {len(replicas)} replica(s), but this is not consistent with previous "
                f"partitions, which have {size} replica(s)."
            )
        if problem:
            raise Fault("INVALID_REPLICA_ASSIGNMENT", f"The manual partition assignment includes {problem}")

    def _validate_active(self, partition: int, replicas: Sequence[int]) -> None:
        if not self.active.intersection(replicas):
            raise Fault(
                "INVALID_REPLICA_ASSIGNMENT",
                f"All brokers specified in the manual partition assignment for partition {partition} are "
                "fenced or in controlled shutdown.",
            )

    def delete(self, name: str, topic_id: str | None) -> None:
        """Handle DeleteTopics for one topic, by id or, if the id is None, by name. Delete its configs."""
        if topic_id is not None and (name not in self.topics or self.topics[name].topic_id != topic_id):
            raise Fault("UNKNOWN_TOPIC_ID", "This server does not host this topic ID.")
        if name not in self.topics:
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.")
        del self.topics[name]
        self.configs.store(ConfigResource(ConfigScope.TOPIC, name), {})

    def add_partitions(self, new_partitions: NewPartitions, *, validate_only: bool) -> None:
        """Handle CreatePartitions for one topic. New partitions have as many replicas as partition 0."""
        topic = self.topics.get(new_partitions.topic)
        if topic is None:
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", "")
        current_count = len(topic.partitions)
        if new_partitions.total == current_count:
            raise Fault("INVALID_PARTITIONS", f"Topic already has {current_count} partition(s).")
        if new_partitions.total < current_count:
            raise Fault(
                "INVALID_PARTITIONS",
                f"The topic {new_partitions.topic} currently has {current_count} partition(s); "
                f"{new_partitions.total} would not be an "
                "increase.",
            )
        factor = len(topic.partitions[0].replicas)
        if new_partitions.assignments is None:
            replica_lists = self._place_replicas(new_partitions.total - current_count, factor)
        else:
            replica_lists = self._resolve_added_assignments(new_partitions, current_count, factor)
        if not validate_only:
            topic.partitions.extend(self._build_partition(replicas) for replicas in replica_lists)

    def _resolve_added_assignments(
        self, new_partitions: NewPartitions, current_count: int, factor: int
    ) -> list[Ids]:
        replica_lists = new_partitions.assignments or ()
        if len(replica_lists) != new_partitions.total - current_count:
            raise Fault(
                "INVALID_REPLICA_ASSIGNMENT",
                f"Attempted to add {new_partitions.total - current_count} additional "
                f"partition(s), but only {len(replica_lists)} "
                "assignment(s) were specified.",
            )
        for index, replicas in enumerate(replica_lists):
            self._validate_assignment(replicas, factor)
            self._validate_active(current_count + index, replicas)
        return [tuple(replicas) for replicas in replica_lists]
