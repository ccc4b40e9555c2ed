"""The live state of a cluster, in data classes that do not depend on the client library."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition


class ConfigSource(StrEnum):
    """The source of a config value (DescribeConfigsResponse.ConfigSource)."""

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
    """Return the source that Kafka reports for configs that are set on the resource itself."""
    if resource.scope is ConfigScope.BROKER and not resource.name:
        return ConfigSource.CLUSTER
    return _OWN_SOURCES[resource.scope]


class ConfigType(StrEnum):
    """The types of config keys that the diff distinguishes (ConfigDef.Type). All other types are SCALAR."""

    LIST = "LIST"
    PASSWORD = "PASSWORD"
    SCALAR = "SCALAR"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config entry. The value of a sensitive key is None, because Kafka does not return it.

    beneath: for an override on a broker, the value that would apply without the override.
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
    """One topic. ``partitions[i]`` is partition i. A topic that is deleted and re-created gets a new id."""

    name: str
    topic_id: str
    partitions: tuple[Partition, ...]
    internal: bool = False


NO_TOPICS: Mapping[str, Topic] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Move:
    """The in-flight reassignment of one partition (ListPartitionReassignments)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment, in order: all replicas except those that are being removed."""
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment: all replicas except those that are being added.

        Cancelling the reassignment restores these replicas, but possibly in a different order.
        """
        return tuple(r for r in self.replicas if r not in self.adding)


@dataclass(frozen=True, slots=True)
class ReplicaDirs:
    """The log directories of one replica (KIP-113).

    path: the log directory that contains the replica, or None if that directory is offline.
    arriving: the log directory that the replica is being moved to, or None.
    """

    path: str | None
    arriving: str | None = None

    @property
    def final_path(self) -> str | None:
        """The target of a move between log directories or, without such a move, the current log directory."""
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
    principal: the principal of kdeclare, such as ``User:alice``. The value is None if kdeclare does not
        authenticate, or if it uses TLS client authentication: only the brokers know how a certificate maps to
        a principal.
    sasl_mechanism: the SASL mechanism that kdeclare authenticates with; None without SASL.
    version: the Kafka release of the finalized metadata version, such as ``4.1``, or None if unknown.
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
    configs: by resource, all overrides and the keys that were requested by name.
    moves: in-flight reassignments of the requested partitions.
    dirs: log directories of the requested replicas, by partition and broker.
    hidden: the requested topics that the principal is not permitted to describe. They might not exist.
    moves_fault: why the cluster does not list reassignments, so that ``moves`` is empty; None if it does.
    unreadable: the requested resources whose configs the cluster refuses to describe.
    omitted: by topic, the requested keys that the cluster does not return. Brokers return every key that they
        know, with its default, so the cluster hides these keys or does not know them.
    """

    cluster: ClusterInfo
    topics: Mapping[str, Topic] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = field(default_factory=dict)
    moves: Mapping[TopicPartition, Move] = field(default_factory=dict)
    dirs: Mapping[tuple[TopicPartition, int], ReplicaDirs] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    moves_fault: Fault | None = None
    unreadable: Mapping[ConfigResource, Fault] = field(default_factory=dict)
    omitted: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def replicas(self, partition: TopicPartition) -> tuple[int, ...] | None:
        """Return the target replicas of a partition that is being reassigned, or its current replicas.

        Return None if the partition does not exist. During a reassignment, the metadata contains the union of
        old and new replicas, which must not be used to compute the replication factor (KIP-860).
        """
        move = self.moves.get(partition)
        if move is not None:
            return move.target
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return topic.partitions[partition.partition].replicas


class PartitionCondition(StrEnum):
    """A condition of a partition that commands can filter by, such as under-replicated."""

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

    move: the in-flight reassignment of the partition. Replicas that are being added need not be in the ISR.
    min_isr: the effective ``min.insync.replicas`` of the topic. None skips the conditions that depend on it.

    The conditions are those of `org.apache.kafka.tools.TopicCommand.PartitionDescription`. The preferred
    leader is the first replica after the reassignment.
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
