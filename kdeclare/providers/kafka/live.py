"""The cluster as data: what observing it gives. Nothing here knows how it was read."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.ids import ConfigResource, TopicPartition


class ConfigSource(StrEnum):
    """Where an effective config value comes from (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = "DYNAMIC_TOPIC_CONFIG"
    BROKER = "DYNAMIC_BROKER_CONFIG"
    CLUSTER = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    STATIC = "STATIC_BROKER_CONFIG"
    DEFAULT = "DEFAULT_CONFIG"
    BROKER_LOGGER = "DYNAMIC_BROKER_LOGGER_CONFIG"
    UNKNOWN = "UNKNOWN_CONFIG"


class ConfigType(StrEnum):
    """The types of config keys that matter to a diff (ConfigDef.Type); the rest is SCALAR."""

    LIST = "LIST"
    PASSWORD = "PASSWORD"
    SCALAR = "SCALAR"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One described key. A sensitive value is None: unknown, not unset.

    beneath: for a key that is set on a broker id, what would hold there without it.
    """

    value: str | None
    source: ConfigSource
    type: ConfigType = ConfigType.SCALAR
    sensitive: bool = False
    read_only: bool = False
    beneath: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as metadata shows it: during a move, ``replicas`` is the union of old and new."""

    replicas: tuple[int, ...]
    leader: int | None = None
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic; ``partitions[i]`` is partition i. The id changes when a topic is created again."""

    name: str
    topic_id: str
    partitions: tuple[Partition, ...]
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's ongoing reassignment, in the controller's words (ListPartitionReassignments)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas it is heading to: listed − removing, in order."""
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas from before, which a cancel leaves: listed − adding. Their order may be another."""
        return tuple(r for r in self.replicas if r not in self.adding)


@dataclass(frozen=True, slots=True)
class ReplicaDirs:
    """Where on its broker one replica is (KIP-113).

    path: the log directory that holds it; None where none does that is online. arriving: the one that it
    is on its way into, if it is.
    """

    path: str | None
    arriving: str | None = None

    @property
    def final_path(self) -> str | None:
        """Where it will be once all is over."""
        return self.arriving or self.path


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. A fenced one is registered but not serving."""

    id: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Who the cluster is.

    rf_guard: whether it knows AllowReplicationFactorChange (KIP-860).
    principal: whom the brokers take kdeclare for (``User:alice``); None where they authenticate nobody, and
        with a TLS certificate, as only they know what they make of its name.
    version: the release of Kafka (``4.1``) that its metadata is that of; None where it does not tell.
    """

    id: str
    brokers: tuple[Broker, ...]
    rf_guard: bool = True
    principal: str | None = None
    version: str | None = None

    @property
    def serving_broker_ids(self) -> frozenset[int]:
        """Ids of the brokers that are not fenced."""
        return frozenset(broker.id for broker in self.brokers if not broker.fenced)


@dataclass(frozen=True, slots=True)
class KafkaState:
    """The live state that a plan needs, as it was at one time.

    topics: all that was asked for and exists.
    configs: per resource, every override and, beside them, the keys that were asked for by name.
    moves: ongoing reassignments among the partitions asked for.
    dirs: by partition and broker, the replicas whose log directories were asked for.
    hidden: topics asked for that the principal may not describe; whether they exist is not known.
    sees_moves: whether the principal may list reassignments; if not, ``moves`` is empty.
    """

    cluster: ClusterInfo
    topics: Mapping[str, Topic] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = field(default_factory=dict)
    moves: Mapping[TopicPartition, Move] = field(default_factory=dict)
    dirs: Mapping[tuple[TopicPartition, int], ReplicaDirs] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    sees_moves: bool = True

    def replicas(self, partition: TopicPartition) -> tuple[int, ...] | None:
        """True replicas: the target of an ongoing move, else what metadata says; None if it is not there.

        KIP-860: a described list is the union during a move and must never stand for the factor.
        """
        move = self.moves.get(partition)
        if move is not None:
            return move.target
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return topic.partitions[partition.partition].replicas


class PartitionCondition(StrEnum):
    """What a partition can be that somebody may look for."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNDER_REPLICATED = "under-replicated"
    AT_MIN_ISR = "at-min-isr"
    NOT_PREFERRED = "not-preferred-leader"
    MOVING = "moving"


def list_conditions(
    partition: Partition, move: Move | None, min_isr: int | None
) -> tuple[PartitionCondition, ...]:
    """All that holds of a partition, in the order of `PartitionCondition`.

    move: its ongoing reassignment. Replicas that are only being added are not missed in the ISR yet.
    min_isr: the topic's effective ``min.insync.replicas``; of None, nothing is said about it.
    As `org.apache.kafka.tools.TopicCommand.PartitionDescription` has it; that a leader is preferred is
    judged by the replicas that the partition will have after its move.
    """
    expected_replicas = partition.replicas if move is None else move.origin
    target = partition.replicas if move is None else move.target
    leader, isr_size = partition.leader, len(partition.isr)
    conditions = []
    if leader is None:
        conditions.append(PartitionCondition.OFFLINE)
    if min_isr is not None and (leader is None or isr_size < min_isr):
        conditions.append(PartitionCondition.UNDER_MIN_ISR)
    if isr_size < len(expected_replicas):
        conditions.append(PartitionCondition.UNDER_REPLICATED)
    if isr_size == min_isr:
        conditions.append(PartitionCondition.AT_MIN_ISR)
    if leader is not None and target and leader != target[0]:
        conditions.append(PartitionCondition.NOT_PREFERRED)
    if move is not None:
        conditions.append(PartitionCondition.MOVING)
    return tuple(conditions)
