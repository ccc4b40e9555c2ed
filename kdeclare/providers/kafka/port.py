"""The port `Cluster`: all that the engine asks of Kafka, in batches, with a result an item."""

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
"""What Kafka calls a request that a policy of the brokers refuses."""

TOPIC_EXISTS = "TOPIC_ALREADY_EXISTS"

QUOTA_EXCEEDED = "THROTTLING_QUOTA_EXCEEDED"
"""What Kafka calls a change that a strict quota of controller mutations (KIP-599) does not allow yet."""

QUOTA_HINT = (
    "Wait and run it again, or ask for a higher controller_mutation_rate for this user and client id: "
    "creating and deleting topics and adding partitions count by the partition."
)


@dataclass(frozen=True, slots=True)
class ConfigQuery:
    """Which keys of one resource to describe.

    keys: asked for by name, whatever their source.
    overrides: also every key that is set on the resource itself. Costs a full describe.
    optional: where the broker to be asked is fenced, do without; for whoever asks for a `KafkaState`.
    """

    resource: ConfigResource
    keys: frozenset[str] = frozenset()
    overrides: bool = False
    optional: bool = False


# As keys of JSON, numbers are texts: only as kdeclare writes them, so that no two are the same number.
_NUMBER_AS_KEY = core_schema.chain_schema(
    [core_schema.str_schema(pattern="^(0|[1-9][0-9]*)$"), core_schema.int_schema(strict=False)]
)

Count = Annotated[int, Field(ge=1)]
BrokerId = Annotated[int, Field(ge=0)]
Replicas = Annotated[tuple[BrokerId, ...], Field(min_length=1)]
PartitionNumber = Annotated[int, GetPydanticSchema(lambda _source, _handler: _NUMBER_AS_KEY)]


@dataclass(frozen=True, slots=True)
class TopicArgs(Arguments):
    """What requests on one topic as a whole have in common: its name."""

    topic: str


@dataclass(frozen=True, slots=True)
class NewTopic(TopicArgs):
    """A topic to create: counts, or assignments. A count that is None is the brokers' default.

    assignments: replicas by partition. configs: texts, and the elements of lists.
    """

    partitions: Count | None
    replication_factor: Count | None
    assignments: Mapping[PartitionNumber, Replicas] | None
    configs: Mapping[str, str | tuple[str, ...]]

    @property
    def count(self) -> int | None:
        """How many partitions are asked for."""
        return len(self.assignments) if self.assignments else self.partitions

    @property
    def config_texts(self) -> dict[str, str]:
        """The configs as requests hold them."""
        return {
            key: ",".join(value) if isinstance(value, tuple) else value for key, value in self.configs.items()
        }


@dataclass(frozen=True, slots=True)
class NewPartitions(TopicArgs):
    """Partitions to add: the new total, and replicas for each added one in order.

    assignments: None has Kafka place them. An empty tuple is what it refuses: replicas for none of them.
    """

    total: Count
    assignments: tuple[Replicas, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """One KIP-339 op. ``value`` is None for DELETE, comma-joined elements for APPEND and SUBTRACT."""

    key: str
    op: FieldOp
    value: str | None


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """All config ops of one resource; Kafka applies them whole or not at all."""

    resource: ConfigResource
    ops: tuple[ConfigOp, ...]


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of one broker (DescribeLogDirs, KIP-113).

    sizes: bytes of each replica in it; of a replica that is being moved between log directories, see
        ``arriving``, which holds those on their way into this one.
    total, usable: bytes of the volume (KIP-827); None where the broker does not say.
    error: Kafka's error name of a directory that is offline.
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
    """What was read of resources, if all of it was. Raises the first Fault."""
    configs: dict[ConfigResource, Configs] = {}
    for resource, item in results.items():
        if isinstance(item, Fault):
            raise item
        configs[resource] = item
    return configs


class Cluster(Protocol):
    """One Kafka cluster.

    Every method raises Fault when the request as a whole failed; the mutating ones otherwise return
    a Result for every item they were given. Reads leave out what does not exist. No method retries:
    `providers.kafka.client.retrying` does, for all adapters.
    """

    def describe(self) -> ClusterInfo:
        """Id, brokers with racks, and whether reassignments can be guarded."""

    def deadline_s(self) -> float:
        """For how many seconds brokers may work on a request that carries a timeout (timeoutMs)."""

    def is_caught_up(self) -> bool:
        """Whether reads show everything that the controller had committed when this was called.

        False also where that cannot be told. It says nothing about the configs of brokers: a broker
        applies those after it has taken over the rest of the metadata. Raises Fault.
        """

    def await_committed(self, wait_policy: WaitPolicy) -> None:
        """Wait until reads show everything that the controller had committed when this was called.

        It ends with patience, and at once where it cannot be told; later waits are not longer. Raises Fault.
        """

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """Topics by name, those that exist; None is all of them, internal ones included."""

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """Those of the topics that the principal may not describe; whether they exist cannot be told.

        `topics` leaves these out of a list of all, and raises Fault where one of them is named.
        """

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """Described keys by resource; a resource that does not exist is left out.

        Raises Fault also where one of the resources is refused.
        For a BROKER the overrides are what is set on that very resource: on a broker id only its own
        per-broker keys, on the empty name the cluster-wide ones.
        """

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        """What `configs` gives; where it would raise because of one resource, that one's Fault."""

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """Ongoing reassignments, in the controller's words (ListPartitionReassignments)."""

    def list_earlier_moves(self) -> Set[TopicPartition]:
        """What was moving at a moment shortly before the one that reads are up to date with.

        Of a move that is over since, a read may still show the union of old and new replicas.
        """

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """CreateTopics: the id of each topic (KIP-516). With ``validate_only`` the controller checks only."""

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """DeleteTopics of the topics with these names and ids; by name alone where the id is None.

        By id, UNKNOWN_TOPIC_ID means that this topic is gone, whatever has the name now.
        """

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """CreatePartitions."""

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """IncrementalAlterConfigs (KIP-339), never the legacy AlterConfigs."""

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """The limits of these entities by key (DescribeClientQuotas, KIP-546); None is all that have some."""

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """AlterClientQuotas: sets limits by key; None removes one. Each entity is changed whole or not."""

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """AlterPartitionReassignments; None cancels. Guarded by the broker (KIP-860), whole request.

        A guarded request to a broker that has version 0 only is refused with UNSUPPORTED_VERSION before
        anything is sent, unless ``unguarded`` says that the caller has checked the sizes itself.
        """

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """How many offsets lie between the start and the end of each topic; 0 means that it is empty."""

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """ElectLeaders, of the preferred one (KIP-460); a partition that it leads already is a success."""

    def log_dirs(self, topics: Sequence[str] | None = None) -> Mapping[int, tuple[LogDir, ...]]:
        """Log directories by broker, with the replicas of these topics (None: of all).

        A broker that does not answer is left out.
        """

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """AlterReplicaLogDirs (KIP-113): into which directory each broker is to put its replica.

        For a replica that the broker does not have yet, it remembers it and answers
        REPLICA_NOT_AVAILABLE; of a partition that is nowhere, UNKNOWN_TOPIC_OR_PARTITION.
        """

    def close(self) -> None:
        """Let go of connections. Safe to call twice."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What brokers tell of themselves and of the client.

    versions: the highest version of each API that a broker has, by API key; absent: it has none.
    features: the levels of finalized features (KIP-584) by name.
    on_cluster, on_topics: the operations (org.apache.kafka.common.acl.AclOperation) that ACLs grant
        (KIP-430), of topics by name, those that may be seen. None where it is not told.
    """

    versions: Mapping[int, int] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    on_cluster: frozenset[str] | None = None
    on_topics: Mapping[str, frozenset[str]] | None = None


class Examinable(Protocol):
    """An open connection to a cluster. diagnostics: what was found in its client properties."""

    diagnostics: tuple[Diagnostic, ...]

    def describe(self) -> ClusterInfo:
        """See `providers.kafka.port.Cluster.describe`."""

    def examine(self) -> Examination:
        """Ask. Raises Fault."""

    def close(self) -> None:
        """Let go of connections. Safe to call twice."""
