"""The `Cluster` protocol: all requests to Kafka. Requests are batches, with one result per item."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault, Outcome, Result
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.consumer_group.port import Groups
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import NO_TOPICS, ClusterInfo, Move, Topic
from kdeclare.providers.kafka.request_values import (
    ActiveProducers,
    ConfigAlteration,
    ConfigQuery,
    Configs,
    LogDir,
    LogPosition,
    NewPartitions,
    NewTopic,
    RecordBatch,
    ScramAlteration,
)
from kdeclare.providers.kafka.scram_user.credential import Credentials, Mechanism


class Cluster(Protocol):
    """One Kafka cluster. The methods do not retry; for retries, use `RetryingCluster`.

    Every method raises Fault if the whole request fails. Otherwise, methods that write return a Result for
    every item, and methods that read omit objects that do not exist.
    """

    @property
    def groups(self) -> Groups:
        """The groups of the cluster, with their offsets."""

    def describe(self) -> ClusterInfo:
        """Return the id, the brokers and the capabilities of the cluster."""

    def deadline_s(self) -> float:
        """Return the timeout that brokers apply to requests (timeoutMs), in seconds."""

    def is_caught_up(self) -> bool:
        """Return whether brokers show all metadata that the controller had committed at the time of the call.

        Returns False if the progress of brokers cannot be determined. Broker configs are not checked, because
        brokers apply them after the rest of the metadata. Raises Fault.
        """

    def await_committed(self, wait_policy: WaitPolicy) -> None:
        """Wait until brokers show all metadata that the controller had committed at the time of the call.

        Returns without waiting if the progress of brokers cannot be determined. The time limit of the wait
        policy applies to this wait and to the waits of later reads. Raises Fault.
        """

    def await_pending_commits(self) -> None:
        """Wait until all changes in earlier controller responses are committed, so that reads show them.

        Returns after a short time if the controller has nothing to commit, and immediately if the offsets of
        its log cannot be read. Raises Fault.
        """

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """Return the named topics that exist.

        If ``names`` is None, return all topics, including internal ones.
        """

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """Return the hidden topics among ``names``.

        A topic is hidden if the principal cannot describe it, so that it is unknown whether the topic exists.
        `topics` omits hidden topics if it reads all topics, and raises Fault if a hidden topic is named.
        """

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """Return the described configs by resource, without resources that do not exist.

        Raises Fault if the request fails or if the cluster refuses to describe one of the resources. A BROKER
        with an empty name has the cluster-wide overrides; a BROKER with an id has the overrides of this
        broker.
        """

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        """Describe configs like `configs`, but return a Fault for each resource that the cluster refuses."""

    def list_config_resources(self, scope: ConfigScope) -> frozenset[ConfigResource]:
        """Return the groups or the client metrics subscriptions that have overrides (ListConfigResources).

        Raises Fault (UNSUPPORTED_VERSION) if the brokers cannot list resources of this type. Brokers before
        Kafka 4.1 can list only subscriptions (KIP-714). Later brokers can also list groups (KIP-1142).
        """

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """Return the in-flight reassignments that the controller lists (ListPartitionReassignments).

        The list can be ahead of what brokers show: the controller omits a reassignment before its end is
        committed (see `await_pending_commits`).
        """

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """Create topics (CreateTopics) and return the id of each topic (KIP-516).

        validate_only: whether the controller only validates the request.
        """

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """Delete topics by id (DeleteTopics), or by name if the id is None.

        UNKNOWN_TOPIC_ID means that the topic no longer exists, even if a new topic has the same name.
        """

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """Add partitions to topics (CreatePartitions)."""

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """Change configs with IncrementalAlterConfigs (KIP-339), not with the deprecated AlterConfigs."""

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """Return the limits of these entities, or of all entities if ``entities`` is None.

        Uses DescribeClientQuotas (KIP-546).
        """

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """Set limits with AlterClientQuotas (KIP-546).

        None removes a limit. The changes to an entity are atomic.
        """

    def scram_users(self, users: Sequence[str] | None = None) -> Mapping[str, Credentials]:
        """Return the SCRAM credentials of these users, or of all users if ``users`` is None.

        Users without credentials are omitted. Uses DescribeUserScramCredentials (KIP-554).
        """

    def can_log_in(self, user: str, mechanism: Mechanism, password: str) -> bool:
        """Return whether brokers accept a SCRAM password. Raises Fault if this cannot be checked."""

    def alter_scram_users(self, items: Sequence[ScramAlteration]) -> Mapping[str, Result]:
        """Set and delete SCRAM credentials (AlterUserScramCredentials), and return the results by user.

        If the request contains a user twice, brokers reject both changes with DUPLICATE_RESOURCE.
        """

    def acls(self, principals: Sequence[str] | None = None) -> frozenset[Binding]:
        """Return the ACL bindings of these principals. None returns all bindings (DescribeAcls).

        Raises Fault (SECURITY_DISABLED) if the brokers have no authorizer.
        """

    def find_cluster_rights(self) -> frozenset[str] | None:
        """Return the operations that the client may perform on the cluster (KIP-430); None if unknown."""

    def create_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """Create ACL bindings (CreateAcls). Creating an existing binding succeeds."""

    def delete_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """Delete exactly these ACL bindings (DeleteAcls). Deleting a missing binding succeeds."""

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """Start reassignments (AlterPartitionReassignments). A target of None cancels a reassignment.

        Unless ``allow_replication_factor_change`` is True, the broker refuses to change the replication
        factor of any partition in the request (KIP-860). A broker that supports only version 0 of the request
        cannot check this, so the request is not sent and fails with UNSUPPORTED_VERSION.
        unguarded: whether the caller has checked the replica counts, so that version 0 is allowed.
        """

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Return the number of records of each topic, computed from the start and end offsets of its logs."""

    def list_offsets(
        self, topics: Sequence[str], times: Sequence[int]
    ) -> Mapping[TopicPartition, tuple[int, ...]]:
        """Return the offset at each time, for every partition of the topics that exist (ListOffsets).

        times: `EARLIEST`, `LATEST`, or milliseconds since 1970. The offset at a time is the offset of the
            first record with this timestamp or a later timestamp. If there is no such record, the offset is
            -1.
        """

    def list_positions(
        self, times: Mapping[str, Sequence[int]], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, tuple[LogPosition, ...]]:
        """Return the same as `list_offsets`, with the timestamps of the records at these offsets.

        times: the times for each topic. Topics with different times share the requests. known: topics that
            were read shortly before. Their leaders are read again only if a request to a leader fails.
        """

    def find_last_writes(self, topics: Sequence[str]) -> Mapping[TopicPartition, int | None]:
        """Return the latest timestamp in each partition of the topics that exist, in milliseconds since 1970.

        None means that the partition is empty. Uses ListOffsets with the time MAX_TIMESTAMP (KIP-734). Raises
        Fault (UNSUPPORTED_VERSION) for brokers before Kafka 3.0.
        """

    def list_producers(
        self, topics: Sequence[str], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, ActiveProducers | Fault]:
        """Return the idempotent and transactional producers of each partition (DescribeProducers, KIP-664).

        Partition leaders forget a producer if it has written nothing for a day
        (``producer.id.expiration.ms``). Producers without idempotence are not included. The request requires
        the Read permission on the topic. The result has a Fault for each partition that its leader refuses to
        describe.

        known: see `list_positions`.
        """

    def fetch_batches(
        self, positions: Mapping[TopicPartition, int], *, max_bytes: int, max_records: int
    ) -> Mapping[TopicPartition, tuple[RecordBatch, ...] | Fault]:
        """Return batches of each partition, starting with the batch that contains the given offset (Fetch).

        Also includes records of open and aborted transactions, but no control records. Does not join a group,
        and commits no offsets.

        max_bytes: the limit for each partition. Brokers return the first batch even if it is larger. If the
            last batch exceeds the limit, only its size and its number of records are known.
        max_records: the maximum number of records to inspect in each partition.
        """

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """Elect preferred leaders (ElectLeaders, KIP-460).

        If the preferred leader already leads a partition, the election succeeds.
        """

    def log_dirs(
        self, topics: Sequence[str] | None = None, *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[int, tuple[LogDir, ...]]:
        """Return the log directories by broker, with the replicas of these topics. None means all topics.

        Brokers that do not respond are omitted.

        known: topics that were read shortly before. They are not read again, so the result contains only the
            partitions that they had then.
        """

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """Move replicas to log directories of their brokers (AlterReplicaLogDirs, KIP-113).

        If a broker does not have the replica yet, the broker remembers the directory and returns
        REPLICA_NOT_AVAILABLE. If the partition does not exist, the result is UNKNOWN_TOPIC_OR_PARTITION.
        """

    def close(self) -> None:
        """Close the connections. Safe to call twice."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The features of brokers, and the permissions of the client.

    versions: by API key, the highest supported API version. Unsupported APIs are not included.
    features: the levels of the finalized features (KIP-584), by name.
    on_cluster: the operations (org.apache.kafka.common.acl.AclOperation) that are granted on the cluster
        (KIP-430), or None if brokers do not report them.
    on_topics: the operations that are granted on each visible topic, by topic, or None if brokers do not
        report them.
    """

    versions: Mapping[int, int] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    on_cluster: frozenset[str] | None = None
    on_topics: Mapping[str, frozenset[str]] | None = None


class Examinable(Protocol):
    """An open connection to a cluster. diagnostics: warnings about the client properties."""

    diagnostics: tuple[Diagnostic, ...]

    def describe(self) -> ClusterInfo:
        """See `providers.kafka.port.Cluster.describe`."""

    def examine(self) -> Examination:
        """Return the features and permissions that the brokers report. Raises Fault."""

    def examine_groups(self) -> Mapping[str, frozenset[str]]:
        """Return the operations that are granted on each visible classic group and consumer group (KIP-430).

        Raises Fault.
        """

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """See `providers.kafka.port.Cluster.find_hidden_topics`."""

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """See `providers.kafka.port.Cluster.create_topics`."""

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        """See `providers.kafka.port.Cluster.describe_configs_partially`."""

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """See `providers.kafka.port.Cluster.alter_configs`."""

    def close(self) -> None:
        """Close the connections. Safe to call twice."""
