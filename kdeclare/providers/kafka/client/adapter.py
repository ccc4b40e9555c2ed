"""The port `Cluster` over kafka-python."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.faults import Fault, Outcome, Result
from kdeclare.core.visibility import Patience
from kdeclare.providers.kafka.client import configs as _configs
from kdeclare.providers.kafka.client import leaders as _leaders
from kdeclare.providers.kafka.client import log_dirs as _log_dirs
from kdeclare.providers.kafka.client import offsets as _offsets
from kdeclare.providers.kafka.client import quotas as _quotas
from kdeclare.providers.kafka.client import reassignments as _reassignments
from kdeclare.providers.kafka.client import topics as _topics
from kdeclare.providers.kafka.client.examining import examine as _examine
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.examination import Examination
from kdeclare.providers.kafka.ids import ConfigResource, TopicPartition
from kdeclare.providers.kafka.live import ClusterInfo, Move, Topic
from kdeclare.providers.kafka.port import (
    Alteration,
    ConfigQuery,
    Configs,
    LogDir,
    NewPartitions,
    NewTopic,
    whole,
)


class KafkaCluster:
    """One Kafka cluster; made by `kdeclare.providers.kafka.client.connect`. Safe to use from several threads.

    diagnostics: what the client properties held that has no effect here.
    """

    def __init__(
        self,
        wire: Wire,
        diagnostics: tuple[Diagnostic, ...] = (),
        principal: str | None = None,
    ) -> None:
        """principal: whom the brokers take this client for, as far as its properties tell."""
        self._wire = wire
        self._principal = principal
        self._fresh = Freshness(wire)
        self.diagnostics = diagnostics

    def describe(self) -> ClusterInfo:
        """DescribeCluster (KIP-700), fenced brokers included from version 2 on (KIP-1073)."""
        return replace(_topics.describe(self._wire), principal=self._principal)

    def deadline_s(self) -> float:
        """See `Wire.request_timeout_ms`, which is what goes into the requests."""
        return self._wire.request_timeout_ms / 1000

    def is_caught_up(self) -> bool:
        """DescribeQuorum (KIP-595) and ApiVersions (KIP-584); see `Freshness`."""
        return self._fresh.is_caught_up()

    def await_committed(self, patience: Patience) -> None:
        """As `is_caught_up`, for longer; see `Freshness`."""
        self._fresh.await_committed(patience)

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """Metadata; never creates a topic."""
        return _topics.topics(self._wire, self._fresh, names)

    def hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """Metadata by name, which tells a topic that is hidden from one that is not there."""
        return _topics.hidden_topics(self._wire, names)

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """DescribeConfigs, spread over all brokers; a broker's own configs from that broker."""
        return whole(self.configs_in_part(queries))

    def configs_in_part(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs | Fault]:
        """DescribeConfigs, as above."""
        return _configs.configs(self._wire, self._fresh, queries)

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """ListPartitionReassignments (KIP-455)."""
        return _reassignments.moves(self._wire, topics)

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """CreateTopics."""
        with self._writing():
            return _topics.create_topics(self._wire, topics, validate_only)

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """DeleteTopics, by id (KIP-516)."""
        with self._writing():
            return _topics.delete_topics(self._wire, targets)

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """CreatePartitions."""
        with self._writing():
            return _topics.create_partitions(self._wire, items, validate_only)

    def alter_configs(
        self, items: Sequence[Alteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """IncrementalAlterConfigs (KIP-339)."""
        with self._writing():
            return _configs.alter_configs(self._wire, items, validate_only)

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """DescribeClientQuotas (KIP-546), from brokers that are up to date."""
        return _quotas.quotas(self._wire, self._fresh, entities)

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """AlterClientQuotas (KIP-546)."""
        with self._writing():
            return _quotas.alter_quotas(self._wire, items, validate_only)

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """AlterPartitionReassignments (KIP-455), guarded by the broker from version 1 on (KIP-860)."""
        with self._writing():
            return _reassignments.reassign(
                self._wire,
                targets,
                allow_replication_factor_change=allow_replication_factor_change,
                unguarded=unguarded,
            )

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """ListOffsets, earliest and latest, at the leaders."""
        return _offsets.record_counts(self._wire, self._fresh, topics)

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """ElectLeaders (KIP-460)."""
        with self._writing():
            return _leaders.elect_leaders(self._wire, partitions)

    def log_dirs(self, topics: Sequence[str] | None = None) -> Mapping[int, tuple[LogDir, ...]]:
        """DescribeLogDirs (KIP-113) at every broker; sizes of volumes from version 4 on (KIP-827)."""
        return _log_dirs.log_dirs(self._wire, self._fresh, topics)

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """AlterReplicaLogDirs (KIP-113), each broker for its own replicas."""
        with self._writing():
            return _log_dirs.move_log_dirs(self._wire, targets)

    def examine(self) -> Examination:
        """ApiVersions, DescribeCluster and Metadata with what the client may do (KIP-430). Raises Fault."""
        return _examine(self._wire)

    def close(self) -> None:
        """Close all connections. Safe to call twice."""
        self._wire.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Have later reads wait for what is written here, also where its outcome is not known."""
        try:
            yield
        finally:
            self._fresh.wrote()
