"""`MemoryCluster`, an implementation of `Cluster` without real brokers."""

from collections.abc import Iterable, Mapping, Sequence

from kdeclare.core.live.faults import CreatedObject, Fault, FaultKind, Outcome, Result
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import (
    ConfigAlteration,
    NewPartitions,
    NewTopic,
    ScramAlteration,
)
from kdeclare.providers.kafka.testing.configs import MAX_VALUE_LENGTH
from kdeclare.providers.kafka.testing.controls import format_resource
from kdeclare.providers.kafka.testing.groups import MemoryGroups
from kdeclare.providers.kafka.testing.listed_configs import LISTED_KEYS, validate_name
from kdeclare.providers.kafka.testing.reads import ClusterReads
from kdeclare.providers.kafka.testing.topics import find_name_problem

OLD_BROKER = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
    "the server version"
)


class MemoryCluster(ClusterReads):
    """An in-memory Kafka cluster for tests. For clients, it behaves like real brokers.

    The methods of `ClusterControls` control time, brokers and records. ``faults`` determines which requests
    fail, and how. ``calls`` contains every request in order. Thread-safe.
    """

    @property
    def groups(self) -> MemoryGroups:
        """See `Cluster.groups`."""
        return MemoryGroups(self)

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """See `Cluster.create_topics`. Names can only collide with topics that existed before the request."""
        existing: list[frozenset[str]] = []

        def create(topic: NewTopic) -> CreatedObject | None:
            if not existing:
                existing.append(frozenset(self._state.topics))
            if topic.topic not in existing[0]:
                self.restrictions.check_new_topic(topic)
            self._state.create(topic, existing[0], validate_only=validate_only)
            return None if validate_only else self._record_creation(topic.topic)

        _validate_value_sizes(value for topic in topics for value in topic.config_texts.values())
        return self._handle_change(
            "create_topics",
            topics,
            lambda t: t.topic,
            str,
            create,
            "Duplicate topic name.",
            validate_only,
        )

    def _record_creation(self, name: str) -> CreatedObject:
        topic_id = self._state.topics[name].topic_id
        if self.metadata_lag:
            self._invisible_topics[topic_id] = self.metadata_lag
        return CreatedObject(topic_id if self.topic_ids else "")

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """See `Cluster.delete_topics`."""
        if not self.topic_ids and any(topic_id is not None for topic_id in targets.values()):
            raise Fault("UNSUPPORTED_VERSION", "The brokers do not support topic ids.")

        def delete(name: str) -> None:
            deleted_topics = self._copy_topics([name])
            self._state.delete(name, targets[name])
            if self.metadata_lag:
                self._deleted_topics |= {n: (topic, self.metadata_lag) for n, topic in deleted_topics.items()}

        return self._handle_change("delete_topics", list(targets), lambda n: n, str, delete, "")

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """See `Cluster.create_partitions`."""
        return self._handle_change(
            "create_partitions",
            items,
            lambda n: n.topic,
            str,
            lambda n: self._state.add_partitions(n, validate_only=validate_only),
            "Duplicate topic name.",
            validate_only,
        )

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """See `Cluster.alter_configs`."""

        def alter(item: ConfigAlteration) -> None:
            if item.resource.scope in LISTED_KEYS:
                validate_name(item.resource)
            if not self._is_existing(item.resource):
                if item.resource.scope is ConfigScope.TOPIC:
                    _validate_topic_name(item.resource.name)
                    self._state.configs.apply_ops(item.resource, item.ops)  # invalid ops are reported first
                    raise Fault(
                        "UNKNOWN_TOPIC_OR_PARTITION", f"The topic '{item.resource.name}' does not exist."
                    )
                # only a broker itself responds to requests about its configs, and this broker does not exist
                raise Fault("NETWORK_EXCEPTION", f"broker {item.resource.name}", FaultKind.RETRIABLE)
            self.restrictions.check_keys(item.resource, frozenset(op.key for op in item.ops))
            overrides = self._state.configs.apply_ops(item.resource, item.ops)
            if not validate_only:
                self._state.configs.store(item.resource, overrides)

        _validate_value_sizes(op.value for item in items for op in item.ops)
        return self._handle_change(
            "alter_configs",
            items,
            lambda a: a.resource,
            format_resource,
            alter,
            "Each resource must appear at most once.",
            validate_only,
        )

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """See `Cluster.alter_quotas`."""
        return self._handle_change(
            "alter_quotas",
            list(items),
            lambda entity: entity,
            str,
            lambda e: self._state.alter_quota(e, items[e], validate_only=validate_only),
            "",
            validate_only,
        )

    def alter_scram_users(self, items: Sequence[ScramAlteration]) -> Mapping[str, Result]:
        """See `Cluster.alter_scram_users`."""
        return self._handle_change(
            "alter_scram_users",
            items,
            lambda item: item.user,
            str,
            lambda item: self._state.scram.alter(item),
            "A user credential cannot be altered twice in the same request",
            duplicate_error="DUPLICATE_RESOURCE",
        )

    def create_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """See `Cluster.create_acls`."""
        unique = list(dict.fromkeys(bindings))
        return self._handle_change(
            "create_acls", unique, lambda binding: binding, str, self._access.create, ""
        )

    def delete_acls(self, bindings: Sequence[Binding]) -> Mapping[Binding, Result]:
        """See `Cluster.delete_acls`."""
        unique = list(dict.fromkeys(bindings))
        return self._handle_change(
            "delete_acls", unique, lambda binding: binding, str, self._access.delete, ""
        )

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """See `Cluster.reassign`."""
        is_guarded = not allow_replication_factor_change
        if is_guarded and not self.rf_guard and not unguarded:
            raise Fault("UNSUPPORTED_VERSION", OLD_BROKER)
        is_guarded = is_guarded and self.rf_guard
        return self._handle_change(
            "reassign",
            list(targets),
            lambda tp: tp,
            str,
            lambda tp: self._state.reassign(tp, targets[tp], is_guarded=is_guarded),
            "",
        )

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """See `Cluster.elect_leaders`."""
        unique_partitions = list(dict.fromkeys(partitions))
        return self._handle_change(
            "elect_leaders", unique_partitions, lambda tp: tp, str, self._state.elect, ""
        )

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """See `Cluster.move_log_dirs`. Each broker has only one directory, so no replica ever moves."""
        return self._handle_change(
            "move_log_dirs",
            list(targets),
            lambda replica: replica,
            lambda replica: f"{replica[0]}@{replica[1]}",
            lambda replica: self._state.move_log_dir(*replica, targets[replica]),
            "",
        )

    def close(self) -> None:
        """See `Cluster.close`."""
        self.closed = True


def _validate_value_sizes(values: Iterable[str | None]) -> None:
    """Raise Fault for a string that is too long for the protocol. Real brokers would close the connection."""
    if any(len((value or "").encode()) > MAX_VALUE_LENGTH for value in values):
        raise Fault("NETWORK_EXCEPTION", "socket disconnected", FaultKind.UNKNOWN)


def _validate_topic_name(name: str) -> None:
    if not name:
        raise Fault("INVALID_REQUEST", "Default topic resources are not allowed.")
    name_problem = find_name_problem(name)
    if name_problem is not None:
        raise Fault("INVALID_TOPIC_EXCEPTION", name_problem)
