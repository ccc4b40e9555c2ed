"""`KafkaCluster`, which implements `Cluster` with kafka-python."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault, Outcome, Result
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.client import configs as _configs
from kdeclare.providers.kafka.client import reassignments as _reassignments
from kdeclare.providers.kafka.client import topics as _topics
from kdeclare.providers.kafka.client.describe_cluster import describe_cluster, examine_broker
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.consumer_group.port import Groups
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import NO_TOPICS, ClusterInfo, Move, Topic
from kdeclare.providers.kafka.port import Examination
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
    require_all_configs,
)
from kdeclare.providers.kafka.scram_user.credential import Credentials, Mechanism

if TYPE_CHECKING:
    from kdeclare.providers.kafka.client.access.acls import AclWriter


class KafkaCluster:
    """One Kafka cluster, opened by `kdeclare.providers.kafka.client.connect`. Thread-safe.

    kafka-python builds the classes of messages when their module is imported. Methods that few commands call
    therefore import the module of their messages themselves.

    diagnostics: warnings about the client properties, for example that a property has no effect.
    """

    def __init__(
        self,
        wire: Wire,
        diagnostics: tuple[Diagnostic, ...] = (),
        principal: str | None = None,
        sasl_mechanism: str | None = None,
        log_in: Callable[[str, str, str], bool] | None = None,
    ) -> None:
        """Create the object. Requests use the open connections of ``wire``.

        principal, sasl_mechanism: see `ClusterInfo`. log_in: a function that checks the password of a user
            for a mechanism.
        """
        self._wire = wire
        self._principal = principal
        self._sasl_mechanism = sasl_mechanism
        self._log_in = log_in
        self._freshness = Freshness(wire)
        self._lock = Lock()
        self._acl_writer: AclWriter | None = None
        self.diagnostics = diagnostics

    @property
    def groups(self) -> Groups:
        """See `Cluster.groups`."""
        from kdeclare.providers.kafka.client.groups.kafka_groups import KafkaGroups

        return KafkaGroups(self._wire)

    def describe(self) -> ClusterInfo:
        """Send DescribeCluster (KIP-700). Version 2 and later also return fenced brokers (KIP-1073)."""
        return replace(
            describe_cluster(self._wire), principal=self._principal, sasl_mechanism=self._sasl_mechanism
        )

    def deadline_s(self) -> float:
        """Return the timeout that requests to brokers contain, in seconds; see `Wire.request_timeout_ms`."""
        return self._wire.request_timeout_ms / 1000

    def is_caught_up(self) -> bool:
        """Return whether brokers have all committed metadata; see `Freshness`."""
        return self._freshness.is_caught_up()

    def await_committed(self, wait_policy: WaitPolicy) -> None:
        """Wait until brokers have all metadata that is committed now; see `Freshness`."""
        self._freshness.await_committed(wait_policy)

    def await_pending_commits(self) -> None:
        """Wait until the metadata that the controller holds in memory is committed; see `Freshness`."""
        self._freshness.await_pending_commits()

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """Send Metadata with automatic topic creation disabled."""
        return _topics.describe_topics(self._wire, self._freshness, names)

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """Send a Metadata request that lists topics by name.

        The response distinguishes hidden topics from missing topics.
        """
        return _topics.find_hidden_topics(self._wire, names)

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """Send DescribeConfigs. Requests for the configs of a broker go to this broker."""
        return require_all_configs(self.describe_configs_partially(queries))

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        """Send DescribeConfigs. If the request to a broker fails, return the Fault for that broker."""
        return _configs.describe_configs(self._wire, self._freshness, queries)

    def list_config_resources(self, scope: ConfigScope) -> frozenset[ConfigResource]:
        """Send ListConfigResources (KIP-714, KIP-1142)."""
        return _configs.list_config_resources(self._wire, self._freshness, scope)

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """Send ListPartitionReassignments (KIP-455)."""
        return _reassignments.list_moves(self._wire, topics)

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """Send CreateTopics."""
        with self._mark_written():
            return _topics.create_topics(self._wire, topics, validate_only)

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """Send DeleteTopics. A topic is identified by its id (KIP-516), or by its name if the id is None."""
        with self._mark_written():
            return _topics.delete_topics(self._wire, targets)

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """Send CreatePartitions."""
        with self._mark_written():
            return _topics.create_partitions(self._wire, items, validate_only)

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """Send IncrementalAlterConfigs (KIP-339)."""
        with self._mark_written():
            return _configs.alter_configs(self._wire, items, validate_only)

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """Send DescribeClientQuotas (KIP-546) to brokers that are up to date."""
        from kdeclare.providers.kafka.client.access.quotas import describe_quotas

        return describe_quotas(self._wire, self._freshness, entities)

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """Send AlterClientQuotas (KIP-546)."""
        from kdeclare.providers.kafka.client.access.quotas import alter_quotas

        with self._mark_written():
            return alter_quotas(self._wire, items, validate_only)

    def scram_users(self, users: Sequence[str] | None = None) -> Mapping[str, Credentials]:
        """Send DescribeUserScramCredentials (KIP-554) to brokers that are up to date."""
        from kdeclare.providers.kafka.client.access.scram import describe_scram_users

        return describe_scram_users(self._wire, self._freshness, users)

    def can_log_in(self, user: str, mechanism: Mechanism, password: str) -> bool:
        """Check a password: open a connection with it, and close the connection."""
        if self._log_in is None:
            raise Fault("LOGIN_NOT_POSSIBLE", "this connection cannot check passwords")
        return self._log_in(user, mechanism.value, password)

    def alter_scram_users(self, items: Sequence[ScramAlteration]) -> Mapping[str, Result]:
        """Send AlterUserScramCredentials (KIP-554)."""
        from kdeclare.providers.kafka.client.access.scram import alter_scram_users

        with self._mark_written():
            return alter_scram_users(self._wire, items)

    def acls(self, principals: Sequence[str] | None = None) -> frozenset[Binding]:
        """Send DescribeAcls to brokers that are up to date."""
        from kdeclare.providers.kafka.client.access.acls import describe_acls

        return describe_acls(self._wire, self._freshness, principals)

    def find_cluster_rights(self) -> frozenset[str] | None:
        """Send DescribeCluster with authorized operations (KIP-430)."""
        from kdeclare.providers.kafka.client.access.acls import read_own_cluster_rights

        return read_own_cluster_rights(self._wire)

    def create_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """Send CreateAcls, one request at a time."""
        with self._mark_written():
            return self._get_acl_writer().create(bindings)

    def delete_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """Send DeleteAcls with exact filters, one request at a time and with pauses."""
        with self._mark_written():
            return self._get_acl_writer().delete(bindings)

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """Send AlterPartitionReassignments (KIP-455). Only version 1 has the replication factor guard."""
        with self._mark_written():
            return _reassignments.reassign(
                self._wire,
                targets,
                allow_replication_factor_change=allow_replication_factor_change,
                unguarded=unguarded,
            )

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Send ListOffsets for the earliest and latest offsets to the partition leaders."""
        from kdeclare.providers.kafka.client.logs.log_offsets import count_records

        return count_records(self._wire, self._freshness, topics)

    def list_offsets(
        self, topics: Sequence[str], times: Sequence[int]
    ) -> Mapping[TopicPartition, tuple[int, ...]]:
        """Send ListOffsets to the partition leaders, with one request for each of ``times``."""
        from kdeclare.providers.kafka.client.logs.log_offsets import list_log_offsets

        return list_log_offsets(self._wire, self._freshness, topics, times)

    def list_positions(
        self, times: Mapping[str, Sequence[int]], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, tuple[LogPosition, ...]]:
        """Send ListOffsets to the partition leaders, once for the first time of each topic, and so on."""
        from kdeclare.providers.kafka.client.logs.log_offsets import list_log_positions

        return list_log_positions(self._wire, self._freshness, times, known)

    def find_last_writes(self, topics: Sequence[str]) -> Mapping[TopicPartition, int | None]:
        """Send ListOffsets with MAX_TIMESTAMP (KIP-734) to the partition leaders."""
        from kdeclare.providers.kafka.client.logs.log_offsets import find_last_writes

        return find_last_writes(self._wire, self._freshness, topics)

    def list_producers(
        self, topics: Sequence[str], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, ActiveProducers | Fault]:
        """Send DescribeProducers (KIP-664) to the partition leaders."""
        from kdeclare.providers.kafka.client.logs.producers import list_producers

        return list_producers(self._wire, self._freshness, topics, known)

    def fetch_batches(
        self, positions: Mapping[TopicPartition, int], *, max_bytes: int, max_records: int
    ) -> Mapping[TopicPartition, tuple[RecordBatch, ...] | Fault]:
        """Send one Fetch for each partition to its leader."""
        from kdeclare.providers.kafka.client.logs.record_fetch import fetch_batches

        return fetch_batches(self._wire, self._freshness, positions, max_bytes, max_records)

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """Send ElectLeaders (KIP-460)."""
        with self._mark_written():
            return _reassignments.elect_leaders(self._wire, partitions)

    def log_dirs(
        self, topics: Sequence[str] | None = None, *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[int, tuple[LogDir, ...]]:
        """Send DescribeLogDirs (KIP-113) to every broker. Volume sizes require version 4 (KIP-827)."""
        from kdeclare.providers.kafka.client.logs.log_dirs import describe_log_dirs

        return describe_log_dirs(self._wire, self._freshness, topics, known)

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """Send AlterReplicaLogDirs (KIP-113). Each broker receives the request for its own replicas."""
        from kdeclare.providers.kafka.client.logs.log_dirs import move_log_dirs

        with self._mark_written():
            return move_log_dirs(self._wire, targets)

    def examine(self) -> Examination:
        """Read API versions, features and authorized operations (KIP-430) from one broker. Raises Fault."""
        return examine_broker(self._wire)

    def examine_groups(self) -> Mapping[str, frozenset[str]]:
        """See `Examinable`."""
        from kdeclare.providers.kafka.client.groups.kafka_groups import KafkaGroups

        return KafkaGroups(self._wire).find_rights()

    def close(self) -> None:
        """Close all connections. Safe to call twice."""
        self._wire.close()

    def _get_acl_writer(self) -> "AclWriter":
        from kdeclare.providers.kafka.client.access.acls import AclWriter

        with self._lock:  # all threads must use the same object, which sends one request at a time
            if self._acl_writer is None:
                self._acl_writer = AclWriter(self._wire)
            return self._acl_writer

    @contextmanager
    def _mark_written(self) -> Iterator[None]:
        """Make all later reads wait until the changes that the ``with`` block makes are visible.

        This also applies if the block raises an error, because the changes may have been made.
        """
        try:
            yield
        finally:
            self._freshness.mark_written()
