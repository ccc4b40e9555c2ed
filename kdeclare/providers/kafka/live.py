"""The live state of a cluster as data classes, independent of the client library."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition


class ConfigSource(StrEnum):
    """The source of an effective config value (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = "DYNAMIC_TOPIC_CONFIG"
    BROKER = "DYNAMIC_BROKER_CONFIG"
    CLUSTER = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    STATIC = "STATIC_BROKER_CONFIG"
    DEFAULT = "DEFAULT_CONFIG"
    BROKER_LOGGER = "DYNAMIC_BROKER_LOGGER_CONFIG"
    CLIENT_METRICS = "DYNAMIC_CLIENT_METRICS_CONFIG"
    GROUP = "DYNAMIC_GROUP_CONFIG"
    UNKNOWN = "UNKNOWN_CONFIG"


_OWN_SOURCES = {
    ConfigScope.TOPIC: ConfigSource.TOPIC,
    ConfigScope.BROKER: ConfigSource.BROKER,
    ConfigScope.GROUP: ConfigSource.GROUP,
    ConfigScope.CLIENT_METRICS: ConfigSource.CLIENT_METRICS,
}


def get_own_source(resource: ConfigResource) -> ConfigSource:
    """Return the source of overrides that are set on the resource itself."""
    if resource.scope is ConfigScope.BROKER and not resource.name:
        return ConfigSource.CLUSTER
    return _OWN_SOURCES[resource.scope]


class ConfigType(StrEnum):
    """The types of config keys that a diff distinguishes (ConfigDef.Type). All other types are SCALAR."""

    LIST = "LIST"
    PASSWORD = "PASSWORD"
    SCALAR = "SCALAR"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One described config key. The value of a sensitive key is None, because Kafka does not return it.

    beneath: for a key that is set on a broker, the value that would apply without this override.
    """

    value: str | None
    source: ConfigSource
    type: ConfigType = ConfigType.SCALAR
    sensitive: bool = False
    read_only: bool = False
    beneath: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition in the metadata. During a reassignment, ``replicas`` contains old and new replicas."""

    replicas: tuple[int, ...]
    leader: int | None = None
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic. ``partitions[i]`` is partition i. If a topic is deleted and re-created, its id changes."""

    name: str
    topic_id: str
    partitions: tuple[Partition, ...]
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """The in-flight reassignment of one partition (ListPartitionReassignments)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment, in order: the listed replicas without the removed replicas."""
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment: the listed replicas without the added replicas.

        A cancellation of the reassignment restores these replicas. Their order can differ from the original
        order.
        """
        return tuple(r for r in self.replicas if r not in self.adding)


@dataclass(frozen=True, slots=True)
class ReplicaDirs:
    """The log directories of one replica on its broker (KIP-113).

    path: the log directory that holds the replica, or None if the replica is in an offline directory.
    arriving: the log directory that the replica is being moved to, or None.
    """

    path: str | None
    arriving: str | None = None

    @property
    def final_path(self) -> str | None:
        """The log directory that holds the replica after a move between directories, if there is one."""
        return self.arriving or self.path


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. A fenced broker is registered but does not serve clients."""

    id: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The id, the brokers and the capabilities of a cluster.

    rf_guard: whether the brokers support AllowReplicationFactorChange (KIP-860).
    principal: the principal that brokers authenticate kdeclare as (``User:alice``). None without
        authentication, and None with a TLS certificate: only the brokers know which principal a certificate
        stands for.
    sasl_mechanism: the SASL mechanism that kdeclare authenticates with; None without SASL.
    version: the Kafka release of the cluster's metadata version (``4.1``), or None if unknown.
    """

    id: str
    brokers: tuple[Broker, ...]
    rf_guard: bool = True
    principal: str | None = None
    version: str | None = None
    sasl_mechanism: str | None = None

    @property
    def serving_broker_ids(self) -> frozenset[int]:
        """The ids of the brokers that are not fenced."""
        return frozenset(broker.id for broker in self.brokers if not broker.fenced)


@dataclass(frozen=True, slots=True)
class KafkaState:
    """The live state that a plan needs, at one point in time.

    topics: the requested topics that exist.
    configs: the config keys of each resource: all overrides, and the keys that were requested by name.
    moves: in-flight reassignments of the requested partitions.
    dirs: log directories of the requested replicas, by partition and broker.
    hidden: the requested topics that the principal is not permitted to describe. It is unknown whether these
        topics exist.
    sees_moves: whether the principal is permitted to list reassignments. If not, ``moves`` is empty.
    """

    cluster: ClusterInfo
    topics: Mapping[str, Topic] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = field(default_factory=dict)
    moves: Mapping[TopicPartition, Move] = field(default_factory=dict)
    dirs: Mapping[tuple[TopicPartition, int], ReplicaDirs] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    sees_moves: bool = True

    def replicas(self, partition: TopicPartition) -> tuple[int, ...] | None:
        """Return the target of the partition's in-flight reassignment or, if there is none, its replicas.

        Returns None if the partition does not exist. During a reassignment, the replicas in the metadata are
        the union of old and new replicas. Never compute the replication factor from this union (KIP-860).
        """
        move = self.moves.get(partition)
        if move is not None:
            return move.target
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return topic.partitions[partition.partition].replicas


class PartitionCondition(StrEnum):
    """A condition of a partition that users can search for."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNDER_REPLICATED = "under-replicated"
    AT_MIN_ISR = "at-min-isr"
    NOT_PREFERRED = "not-preferred-leader"
    MOVING = "moving"


def list_conditions(
    partition: Partition, move: Move | None, min_isr: int | None
) -> tuple[PartitionCondition, ...]:
    """Return the conditions of a partition, in the order of `PartitionCondition`.

    move: the in-flight reassignment of the partition. Replicas that are being added are not expected in the
        ISR.
    min_isr: the effective ``min.insync.replicas`` of the topic. If None, the conditions that depend on
        ``min_isr`` are not checked.
    The conditions are the same as in `org.apache.kafka.tools.TopicCommand.PartitionDescription`. The
    preferred leader is the first replica after the reassignment.
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
