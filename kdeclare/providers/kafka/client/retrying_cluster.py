"""`RetryingCluster`, which adds retries to a `Cluster`."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault, Outcome, Result
from kdeclare.core.operations import retry as core_retry
from kdeclare.core.operations.retry import Retry, RetryPolicy
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.client.groups.retrying_groups import RetryingGroups
from kdeclare.providers.kafka.client.item_retries import send_with_retries
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.consumer_group.port import Groups
from kdeclare.providers.kafka.error_names import QUOTA_EXCEEDED
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import NO_TOPICS, ClusterInfo, Move, Topic
from kdeclare.providers.kafka.port import Cluster
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

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")
_log = logging.getLogger(__name__)


def log_retry(retry: Retry) -> None:
    """Log a retry. After quota errors, log the first retry and then every tenth retry as a warning."""
    if retry.fault.error == QUOTA_EXCEEDED and retry.attempt % 10 == 1:
        remaining_text = f"; {retry.items} items remaining" if retry.items else ""
        _log.warning("%s%s: waiting until brokers accept more changes", retry.fault.message, remaining_text)
        return
    core_retry.log_retry(retry)


class RetryingCluster:
    """A `Cluster` that retries requests and items that failed with a RETRIABLE fault.

    Thread-safe if ``cluster`` is thread-safe. `RetryPolicy` determines the number of attempts and the
    backoff.
    """

    def __init__(self, cluster: Cluster, policy: RetryPolicy) -> None:
        self._cluster = cluster
        self._policy = replace(policy, quota_errors=frozenset({QUOTA_EXCEEDED}))

    @property
    def groups(self) -> Groups:
        """See `Cluster.groups`."""
        return RetryingGroups(self._cluster.groups, self._policy)

    def describe(self) -> ClusterInfo:
        """See `Cluster.describe`."""
        return self._policy.whole("describe", self._cluster.describe)

    def deadline_s(self) -> float:
        """See `Cluster.deadline_s`."""
        return self._cluster.deadline_s()

    def is_caught_up(self) -> bool:
        """See `Cluster.is_caught_up`."""
        return self._policy.whole("is_caught_up", self._cluster.is_caught_up)

    def await_committed(self, wait_policy: WaitPolicy) -> None:
        """See `Cluster.await_committed`."""
        self._policy.whole("await_committed", lambda: self._cluster.await_committed(wait_policy))

    def await_pending_commits(self) -> None:
        """See `Cluster.await_pending_commits`."""
        self._policy.whole("await_pending_commits", self._cluster.await_pending_commits)

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """See `Cluster.topics`."""
        return self._policy.whole("topics", lambda: self._cluster.topics(names))

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """See `Cluster.find_hidden_topics`."""
        return self._policy.whole("hidden_topics", lambda: self._cluster.find_hidden_topics(names))

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """See `Cluster.configs`."""
        return self._policy.whole("configs", lambda: self._cluster.configs(queries))

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        """See `Cluster.describe_configs_partially`."""
        return self._send_with_retries(
            "configs_in_part", queries, lambda query: query.resource, self._cluster.describe_configs_partially
        )

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """See `Cluster.moves`."""
        return self._policy.whole("moves", lambda: self._cluster.moves(topics))

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """See `Cluster.record_counts`."""
        return self._policy.whole("record_counts", lambda: self._cluster.record_counts(topics))

    def list_offsets(
        self, topics: Sequence[str], times: Sequence[int]
    ) -> Mapping[TopicPartition, tuple[int, ...]]:
        """See `Cluster.list_offsets`."""
        return self._policy.whole("list_offsets", lambda: self._cluster.list_offsets(topics, times))

    def list_positions(
        self, times: Mapping[str, Sequence[int]], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, tuple[LogPosition, ...]]:
        """See `Cluster.list_positions`."""
        return self._policy.whole("list_offsets", lambda: self._cluster.list_positions(times, known=known))

    def find_last_writes(self, topics: Sequence[str]) -> Mapping[TopicPartition, int | None]:
        """See `Cluster.find_last_writes`."""
        return self._policy.whole("last_writes", lambda: self._cluster.find_last_writes(topics))

    def list_producers(
        self, topics: Sequence[str], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, ActiveProducers | Fault]:
        """See `Cluster.list_producers`."""
        return self._policy.whole("producers", lambda: self._cluster.list_producers(topics, known=known))

    def fetch_batches(
        self, positions: Mapping[TopicPartition, int], *, max_bytes: int, max_records: int
    ) -> Mapping[TopicPartition, tuple[RecordBatch, ...] | Fault]:
        """See `Cluster.fetch_batches`."""
        return self._send_with_retries(
            "fetch_batches",
            list(positions),
            lambda where: where,
            lambda rest: self._cluster.fetch_batches(
                {where: positions[where] for where in rest}, max_bytes=max_bytes, max_records=max_records
            ),
        )

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """See `Cluster.create_topics`."""
        return self._send_with_retries(
            "create_topics",
            topics,
            lambda topic: topic.topic,
            lambda items: self._cluster.create_topics(items, validate_only=validate_only),
        )

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """See `Cluster.delete_topics`. A retry sends the same topic ids."""
        return self._send_with_retries(
            "delete_topics",
            list(targets),
            lambda name: name,
            lambda rest: self._cluster.delete_topics({name: targets[name] for name in rest}),
        )

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """See `Cluster.create_partitions`."""
        return self._send_with_retries(
            "create_partitions",
            items,
            lambda item: item.topic,
            lambda rest: self._cluster.create_partitions(rest, validate_only=validate_only),
        )

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """See `Cluster.alter_configs`."""
        return self._send_with_retries(
            "alter_configs",
            items,
            lambda item: item.resource,
            lambda rest: self._cluster.alter_configs(rest, validate_only=validate_only),
        )

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """See `Cluster.quotas`."""
        return self._policy.whole("quotas", lambda: self._cluster.quotas(entities))

    def list_config_resources(self, scope: ConfigScope) -> frozenset[ConfigResource]:
        """See `Cluster.list_config_resources`."""
        return self._policy.whole("config_resources", lambda: self._cluster.list_config_resources(scope))

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """See `Cluster.alter_quotas`."""
        return self._send_with_retries(
            "alter_quotas",
            list(items),
            lambda entity: entity,
            lambda rest: self._cluster.alter_quotas(
                {entity: items[entity] for entity in rest}, validate_only=validate_only
            ),
        )

    def scram_users(self, users: Sequence[str] | None = None) -> Mapping[str, Credentials]:
        """See `Cluster.scram_users`."""
        return self._policy.whole("scram_users", lambda: self._cluster.scram_users(users))

    def can_log_in(self, user: str, mechanism: Mechanism, password: str) -> bool:
        """See `Cluster.can_log_in`."""
        return self._policy.whole("can_log_in", lambda: self._cluster.can_log_in(user, mechanism, password))

    def alter_scram_users(self, items: Sequence[ScramAlteration]) -> Mapping[str, Result]:
        """See `Cluster.alter_scram_users`."""
        return self._send_with_retries(
            "alter_scram_users", items, lambda item: item.user, self._cluster.alter_scram_users
        )

    def acls(self, principals: Sequence[str] | None = None) -> frozenset[Binding]:
        """See `Cluster.acls`."""
        return self._policy.whole("acls", lambda: self._cluster.acls(principals))

    def find_cluster_rights(self) -> frozenset[str] | None:
        """See `Cluster.find_cluster_rights`."""
        return self._policy.whole("cluster_rights", self._cluster.find_cluster_rights)

    def create_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """See `Cluster.create_acls`."""
        return self._send_with_retries(
            "create_acls", bindings, lambda binding: binding, self._cluster.create_acls
        )

    def delete_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """See `Cluster.delete_acls`."""
        return self._send_with_retries(
            "delete_acls", bindings, lambda binding: binding, self._cluster.delete_acls
        )

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """See `Cluster.reassign`."""
        return self._send_with_retries(
            "reassign",
            list(targets),
            lambda partition: partition,
            lambda rest: self._cluster.reassign(
                {partition: targets[partition] for partition in rest},
                allow_replication_factor_change=allow_replication_factor_change,
                unguarded=unguarded,
            ),
        )

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """See `Cluster.elect_leaders`."""
        return self._send_with_retries(
            "elect_leaders", partitions, lambda partition: partition, self._cluster.elect_leaders
        )

    def log_dirs(
        self, topics: Sequence[str] | None = None, *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[int, tuple[LogDir, ...]]:
        """See `Cluster.log_dirs`."""
        return self._policy.whole("log_dirs", lambda: self._cluster.log_dirs(topics, known=known))

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """See `Cluster.move_log_dirs`."""
        return self._send_with_retries(
            "move_log_dirs",
            list(targets),
            lambda replica: replica,
            lambda rest: self._cluster.move_log_dirs({replica: targets[replica] for replica in rest}),
        )

    def close(self) -> None:
        """See `Cluster.close`."""
        self._cluster.close()

    def _send_with_retries(
        self,
        call: str,
        items: Sequence[T],
        get_key: Callable[[T], K],
        send: Callable[[Sequence[T]], Mapping[K, R | Fault]],
    ) -> Mapping[K, R | Fault]:
        return send_with_retries(self._policy, call, items, get_key, send)
