"""The `Cluster` protocol: every request that the engine makes to Kafka, batched, with one result per item."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from typing import Annotated, Protocol

from pydantic import Field, GetPydanticSchema
from pydantic_core import core_schema

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault, Outcome, Result
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.ids import ConfigResource, TopicPartition
from kdeclare.providers.kafka.live import ClusterInfo, ConfigEntry, Move, Topic

CLUSTER_AUTHORIZATION_FAILED = "CLUSTER_AUTHORIZATION_FAILED"
TOPIC_AUTHORIZATION_FAILED = "TOPIC_AUTHORIZATION_FAILED"
POLICY_VIOLATION = "POLICY_VIOLATION"
"""Kafka's error name for a request that a broker policy rejects."""

TOPIC_EXISTS = "TOPIC_ALREADY_EXISTS"

QUOTA_EXCEEDED = "THROTTLING_QUOTA_EXCEEDED"
"""Kafka's error name for a change that currently exceeds a strict controller mutation quota (KIP-599)."""

QUOTA_HINT = (
    "Wait and run the command again, or request a higher controller_mutation_rate for this user and client "
    "id. Every partition that is created, added or deleted counts against this quota."
)


@dataclass(frozen=True, slots=True)
class ConfigQuery:
    """The config keys of one resource to describe.

    keys: keys to describe by name, from any source.
    overrides: whether to add every key that is set on the resource itself. Requires a full describe.
    optional: whether `observe` may leave out the resource if its broker is fenced.
    """

    resource: ConfigResource
    keys: frozenset[str] = frozenset()
    overrides: bool = False
    optional: bool = False


# JSON keys are strings. Only canonical numbers are accepted, so that no two keys mean the same number.
_NUMBER_AS_KEY = core_schema.chain_schema(
    [core_schema.str_schema(pattern="^(0|[1-9][0-9]*)$"), core_schema.int_schema(strict=False)]
)

Count = Annotated[int, Field(ge=1)]
BrokerId = Annotated[int, Field(ge=0)]
Replicas = Annotated[tuple[BrokerId, ...], Field(min_length=1)]
PartitionNumber = Annotated[int, GetPydanticSchema(lambda _source, _handler: _NUMBER_AS_KEY)]


@dataclass(frozen=True, slots=True)
class TopicArgs(Arguments):
    """Base class for the arguments of requests about a whole topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class NewTopic(TopicArgs):
    """A topic to create, by counts or by assignments. A count of None means the broker default.

    assignments: replicas by partition. configs: a string, or the elements of a list.
    """

    partitions: Count | None
    replication_factor: Count | None
    assignments: Mapping[PartitionNumber, Replicas] | None
    configs: Mapping[str, str | tuple[str, ...]]

    @property
    def count(self) -> int | None:
        """The number of partitions; None means the broker default."""
        return len(self.assignments) if self.assignments else self.partitions

    @property
    def config_texts(self) -> dict[str, str]:
        """The configs as requests carry them, with list elements joined by commas."""
        return {
            key: ",".join(value) if isinstance(value, tuple) else value for key, value in self.configs.items()
        }


@dataclass(frozen=True, slots=True)
class NewPartitions(TopicArgs):
    """Partitions to add: the new total, and the replicas of each added partition in order.

    assignments: None lets Kafka place the replicas. Kafka rejects an empty tuple.
    """

    total: Count
    assignments: tuple[Replicas, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """One KIP-339 op. ``value`` is None for DELETE and comma-joined elements for APPEND and SUBTRACT."""

    key: str
    op: FieldOp
    value: str | None


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """All config ops of one resource; Kafka applies them atomically."""

    resource: ConfigResource
    ops: tuple[ConfigOp, ...]


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of one broker (DescribeLogDirs, KIP-113).

    sizes: size in bytes of each replica in this directory.
    arriving: size in bytes of each replica that is being moved into this directory.
    total, usable: bytes of the volume (KIP-827); None if the broker does not report them.
    error: Kafka's error name if the directory is offline.
    """

    path: str
    sizes: Mapping[TopicPartition, int]
    arriving: Mapping[TopicPartition, int]
    total: int | None = None
    usable: int | None = None
    error: str | None = None


Configs = Mapping[str, ConfigEntry]
"""Described keys of one resource."""


def require_all_configs(
    results: Mapping[ConfigResource, Configs | Fault],
) -> Mapping[ConfigResource, Configs]:
    """Return the configs of all resources. Raises the first Fault among the results."""
    configs: dict[ConfigResource, Configs] = {}
    for resource, item in results.items():
        if isinstance(item, Fault):
            raise item
        configs[resource] = item
    return configs


class Cluster(Protocol):
    """One Kafka cluster.

    Every method raises Fault if the request as a whole fails; otherwise mutating methods return a Result for
    every item. Reads omit objects that do not exist. No method retries:
    `providers.kafka.client.cluster.RetryingCluster` does, for all adapters.
    """

    def describe(self) -> ClusterInfo:
        """Return the id, the brokers with their racks, and whether brokers can guard reassignments."""

    def deadline_s(self) -> float:
        """Return the timeout of requests in seconds (timeoutMs): how long brokers may work on them."""

    def is_caught_up(self) -> bool:
        """Return whether reads show everything that the controller had committed when this was called.

        Also returns False if this cannot be determined. Broker configs are not covered, because brokers apply
        them after the rest of the metadata. Raises Fault.
        """

    def await_committed(self, wait_policy: WaitPolicy) -> None:
        """Wait until reads show everything that the controller had committed when this was called.

        Returns without waiting if the progress of brokers cannot be determined. The policy's time limit
        applies to this wait and to the waits of later reads. Raises Fault.
        """

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """Return the named topics that exist. None returns all topics, including internal ones."""

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """Return the topics that the principal may not describe; whether they exist is unknown.

        When `topics` reads all topics, it omits hidden topics. It raises Fault if a hidden topic is named.
        """

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """Return the described keys by resource, without resources that do not exist.

        Also raises Fault if the cluster refuses one of the resources. The overrides of a BROKER are the keys
        set on exactly that resource: per-broker keys for a broker id, cluster-wide keys for the empty name.
        """

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        """Return the same as `configs`, but with the Fault of each resource that the cluster refuses."""

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """Return in-flight reassignments as the controller lists them (ListPartitionReassignments)."""

    def list_earlier_moves(self) -> Set[TopicPartition]:
        """Return the partitions that were being reassigned shortly before the state that reads show.

        If such a reassignment has finished since, a read may still show the union of old and new replicas.
        """

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """Create topics (CreateTopics) and return the id of each (KIP-516).

        With ``validate_only`` the controller only validates the request.
        """

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """Delete the topics with these names and ids (DeleteTopics), by name if the id is None.

        The error UNKNOWN_TOPIC_ID means that the topic is gone, even if a different topic has its name now.
        """

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """Add partitions to topics (CreatePartitions)."""

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """Change configs with IncrementalAlterConfigs (KIP-339), never with the legacy AlterConfigs."""

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """Return the limits of these entities by key; None returns every entity that has limits.

        Uses DescribeClientQuotas (KIP-546).
        """

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """Set limits by key (AlterClientQuotas); None removes a limit. Each entity is changed atomically."""

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """Start reassignments (AlterPartitionReassignments); a target of None cancels one.

        The broker guards the replication factor of the whole request (KIP-860). A guarded request to a broker
        that only has version 0 fails with UNSUPPORTED_VERSION before it is sent, unless ``unguarded`` states
        that the caller has checked the replica counts itself.
        """

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Return the record count of each topic: the number of offsets between the start and end."""

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """Elect preferred leaders (ElectLeaders, KIP-460).

        A partition that its preferred leader already leads counts as a success.
        """

    def log_dirs(self, topics: Sequence[str] | None = None) -> Mapping[int, tuple[LogDir, ...]]:
        """Return the log directories by broker, with the replicas of these topics. None means all topics.

        A broker that does not respond is omitted.
        """

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """Move replicas to these log directories of their brokers (AlterReplicaLogDirs, KIP-113).

        If the broker does not have the replica yet, it remembers the directory and returns
        REPLICA_NOT_AVAILABLE. A partition that does not exist returns UNKNOWN_TOPIC_OR_PARTITION.
        """

    def close(self) -> None:
        """Close the connections. Safe to call twice."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The features of brokers, and the permissions of the client.

    versions: the highest version of each API that a broker supports, by API key; unsupported APIs are absent.
    features: the levels of finalized features (KIP-584) by name.
    on_cluster: the operations (org.apache.kafka.common.acl.AclOperation) that ACLs grant on the cluster
        (KIP-430); None if brokers do not report them.
    on_topics: the operations that ACLs grant on each visible topic, by topic name.
    """

    versions: Mapping[int, int] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    on_cluster: frozenset[str] | None = None
    on_topics: Mapping[str, frozenset[str]] | None = None


class Examinable(Protocol):
    """An open connection to a cluster. diagnostics: problems with its client properties."""

    diagnostics: tuple[Diagnostic, ...]

    def describe(self) -> ClusterInfo:
        """See `providers.kafka.port.Cluster.describe`."""

    def examine(self) -> Examination:
        """Return what the brokers report. Raises Fault."""

    def close(self) -> None:
        """Close the connections. Safe to call twice."""
