"""The requests that read an in-memory cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.acl.binding import TOPIC, Binding
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.error_names import TOPIC_AUTHORIZATION_FAILED
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition, parse_broker_id
from kdeclare.providers.kafka.live import (
    NO_TOPICS,
    Broker,
    ClusterInfo,
    ConfigEntry,
    ConfigSource,
    Move,
    Topic,
)
from kdeclare.providers.kafka.request_values import (
    ActiveProducers,
    ConfigQuery,
    Configs,
    LogDir,
    LogPosition,
    RecordBatch,
    require_all_configs,
)
from kdeclare.providers.kafka.scram_user.credential import Credentials, Mechanism
from kdeclare.providers.kafka.testing.access import STANDARD_AUTHORIZER
from kdeclare.providers.kafka.testing.configs import ConfigStore
from kdeclare.providers.kafka.testing.controls import Call, format_resource
from kdeclare.providers.kafka.testing.definitions import TOPIC_KEYS
from kdeclare.providers.kafka.testing.listed_configs import LISTED_KEYS, describe_listed_key
from kdeclare.providers.kafka.testing.request_handler import RequestHandler

VERSION = "4.3"
"""The Kafka release that the in-memory cluster emulates."""


class ClusterReads(RequestHandler):
    """The methods of `Cluster` that change nothing. Thread-safe."""

    def describe(self) -> ClusterInfo:
        """See `Cluster.describe`."""
        with self._lock:
            return self._handle_read("describe", (), self._build_info)

    def _build_info(self) -> ClusterInfo:
        brokers = sorted(self._state.brokers.values(), key=lambda b: b.id)
        has_rf_guard = self.rf_guard and self.restrictions.supports("reassign")
        hides_racks = self.restrictions.hides_racks
        listed_brokers = tuple(
            Broker(b.id, "localhost", 9092 + b.id, None if hides_racks else b.rack, b.fenced) for b in brokers
        )
        return ClusterInfo(
            self._cluster_id, listed_brokers, has_rf_guard, self.principal, VERSION, self.sasl_mechanism
        )

    def deadline_s(self) -> float:
        """See `Cluster.deadline_s`. The value is based on a request timeout of 30 seconds."""
        return 27.0

    def is_caught_up(self) -> bool:
        """See `Cluster.is_caught_up`.

        Returns False while ``stale_reads`` or ``metadata_lag`` makes reads stale.
        """
        with self._lock:
            is_lagging = bool(self._invisible_topics or self._deleted_topics)
            return not is_lagging and (self._stale_topics is None or self._stale_reads_left == 0)

    def await_committed(self, wait_policy: WaitPolicy) -> None:
        """See `Cluster.await_committed`. Does not wait, because only reads advance the in-memory brokers."""

    def await_pending_commits(self) -> None:
        """See `Cluster.await_pending_commits`. Does not wait, like `await_committed`."""

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """See `Cluster.topics`.

        While ``stale_reads`` is not 0, return the topics from before the last change.
        """
        with self._lock:
            return self._handle_read("topics", names or (), lambda: self._read_visible_topics(names))

    def _read_visible_topics(self, names: Sequence[str] | None) -> dict[str, Topic]:
        if self._stale_topics is not None and self._stale_reads_left > 0:
            self._stale_reads_left -= 1
            visible_topics = self._stale_topics
        else:
            visible_topics = self._apply_metadata_lag(self._copy_topics(names))
        if names is not None and not self.hidden.isdisjoint(names):
            name = min(self.hidden.intersection(names))
            raise Fault("TOPIC_AUTHORIZATION_FAILED", f"topic {name}")
        visible_names = sorted(visible_topics.keys() - self.hidden) if names is None else names
        return {n: visible_topics[n] for n in visible_names if n in visible_topics}

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """See `Cluster.find_hidden_topics`; returns the topics in ``hidden``."""
        with self._lock:
            return self._handle_read("hidden_topics", names, lambda: self.hidden.intersection(names))

    def _apply_metadata_lag(self, topics: dict[str, Topic]) -> dict[str, Topic]:
        """Count this read, and return the topics that the lagging brokers show (``metadata_lag``)."""
        invisible_topics, deleted_topics = self._invisible_topics, self._deleted_topics
        visible_topics = {
            n: t for n, t in topics.items() if self._state.topics[n].topic_id not in invisible_topics
        }
        visible_topics = {name: topic for name, (topic, _) in deleted_topics.items()} | visible_topics
        self._invisible_topics = {
            topic_id: left - 1 for topic_id, left in invisible_topics.items() if left > 1
        }
        self._deleted_topics = {
            name: (topic, left - 1) for name, (topic, left) in deleted_topics.items() if left > 1
        }
        return visible_topics

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """See `Cluster.configs`. The configs of topics come from the broker with the lowest id."""
        return require_all_configs(self.describe_configs_partially(queries))

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        """See `Cluster.describe_configs_partially`. The request is logged as ``configs``.

        While ``stale_configs`` is not 0, return the broker configs from before the last change.
        """

        def respond(refused_items: Mapping[str, Fault]) -> dict[ConfigResource, Configs | Fault]:
            results: dict[ConfigResource, Configs | Fault] = {}
            configs = self._read_visible_configs()
            for query in queries:
                fault = (
                    refused_items.get(format_resource(query.resource))
                    or _find_broker_id_fault(query.resource)
                    or self.restrictions.find_description_fault(query.resource)
                )
                if fault is not None or self._is_visible(query.resource):
                    results[query.resource] = fault or self._describe_keys(query, configs)
            return results

        with self._lock:
            return self._run_request(
                Call("configs", tuple(format_resource(q.resource) for q in queries)), respond
            )

    def _read_visible_configs(self) -> ConfigStore:
        configs = self._state.configs
        if self._stale_configs_left == 0:
            return configs
        self._stale_configs_left -= 1
        topic_overrides = {r: v for r, v in configs.overrides.items() if r.scope is not ConfigScope.BROKER}
        return replace(configs, overrides={**topic_overrides, **self._stale_configs})

    def _describe_keys(self, query: ConfigQuery, configs: ConfigStore) -> dict[str, ConfigEntry]:
        resource = query.resource
        names = query.keys | (configs.of(resource).keys() if query.overrides else frozenset())
        entries: dict[str, ConfigEntry] = {}
        for name in sorted(names - self.restrictions.hidden_keys):
            if resource.scope is ConfigScope.TOPIC:
                entry = configs.describe_topic_key(resource.name, name) if name in TOPIC_KEYS else None
            elif resource.scope in LISTED_KEYS:
                entry = describe_listed_key(resource, configs.of(resource), name)
            elif resource.name:
                entry = configs.describe_broker_key(int(resource.name), name)
            else:
                entry = configs.describe_cluster_key(name)
            if name == "authorizer.class.name" and self.has_authorizer and entry and not entry.value:
                entry = replace(entry, value=STANDARD_AUTHORIZER, source=ConfigSource.STATIC)
            if entry is not None:
                entries[name] = entry
        return entries

    def _is_visible(self, resource: ConfigResource) -> bool:
        """Return whether brokers show the resource yet. They lag by ``metadata_lag`` reads."""
        if not self._is_existing(resource):
            return False
        topic = self._state.topics.get(resource.name) if resource.scope is ConfigScope.TOPIC else None
        return topic is None or topic.topic_id not in self._invisible_topics

    def _is_existing(self, resource: ConfigResource) -> bool:
        if resource.scope is ConfigScope.TOPIC:
            return resource.name in self._state.topics
        if resource.scope in LISTED_KEYS:
            return True  # Kafka stores configs for names that nothing uses yet
        return not resource.name or parse_broker_id(resource.name) in self._state.brokers

    def list_config_resources(self, scope: ConfigScope) -> frozenset[ConfigResource]:
        """See `Cluster.list_config_resources`."""

        def respond() -> frozenset[ConfigResource]:
            return frozenset(r for r in self._state.configs.overrides if r.scope is scope)

        with self._lock:
            return self._handle_read("config_resources", (scope,), respond)

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """See `Cluster.moves`. If ``tick_on_poll`` is set, each call also advances time by one tick."""
        with self._lock:
            found = self._handle_read("moves", topics or (), lambda: self._state.moves(topics))
            if self.tick_on_poll:
                self.tick()
            return found

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """See `Cluster.record_counts`."""
        with self._lock:
            topic_states = self._state.topics
            visible_names = [
                n
                for n in topics
                if n in topic_states and topic_states[n].topic_id not in self._invisible_topics
            ]
            return self._handle_read(
                "record_counts", topics, lambda: {n: topic_states[n].records for n in visible_names}
            )

    def list_offsets(
        self, topics: Sequence[str], times: Sequence[int]
    ) -> Mapping[TopicPartition, tuple[int, ...]]:
        """See `Cluster.list_offsets`."""
        positions = self.list_positions(dict.fromkeys(topics, times)).items()
        return {where: tuple(position.offset for position in found) for where, found in positions}

    def list_positions(
        self, times: Mapping[str, Sequence[int]], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, tuple[LogPosition, ...]]:
        """See `Cluster.list_positions`.

        Records have the timestamp 0 unless `produce` or `set_log` sets another timestamp.
        """
        state = self._state

        def respond() -> dict[TopicPartition, tuple[LogPosition, ...]]:
            return {
                TopicPartition(name, number): tuple(
                    state.group_store.find_position(state.topics[name], number, at) for at in topic_times
                )
                for name, topic_times in times.items()
                if name in state.topics
                for number in range(len(state.topics[name].partitions))
            }

        with self._lock:
            return self._handle_read("list_offsets", list(times), respond)

    def find_last_writes(self, topics: Sequence[str]) -> Mapping[TopicPartition, int | None]:
        """See `Cluster.find_last_writes`."""
        state = self._state

        def respond() -> dict[TopicPartition, int | None]:
            return {
                TopicPartition(name, number): state.group_store.find_last_time(state.topics[name], number)
                for name in topics
                if name in state.topics
                for number in range(len(state.topics[name].partitions))
            }

        with self._lock:
            return self._handle_read("last_writes", topics, respond)

    def list_producers(
        self, topics: Sequence[str], *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[TopicPartition, ActiveProducers | Fault]:
        """See `Cluster.list_producers`. A test sets the producers with `set_producers`."""
        state = self._state

        def respond(refused_topics: Mapping[str, Fault]) -> dict[TopicPartition, ActiveProducers | Fault]:
            return {
                where: refused_topics.get(name)
                or state.group_store.producers.get((state.topics[name].topic_id, where.partition), ())
                for name in topics
                if name in state.topics
                for where in (TopicPartition(name, n) for n in range(len(state.topics[name].partitions)))
            }

        with self._lock:
            return self._run_request(Call("producers", tuple(topics)), respond)

    def fetch_batches(
        self, positions: Mapping[TopicPartition, int], *, max_bytes: int, max_records: int
    ) -> Mapping[TopicPartition, tuple[RecordBatch, ...] | Fault]:
        """See `Cluster.fetch_batches`. In the log of requests, items have the form ``orders-0``."""

        def fetch(where: TopicPartition) -> tuple[RecordBatch, ...]:
            if not self._access.is_allowed("READ", TOPIC, where.topic):
                raise Fault(TOPIC_AUTHORIZATION_FAILED, f"records of {where}")
            if self._state.partition(where).leader is None:
                raise Fault("LEADER_NOT_AVAILABLE", f"partition {where} has no leader", FaultKind.RETRIABLE)
            topic = self._state.topics[where.topic]
            return self._state.group_store.fetch_batches(
                topic, where.partition, positions[where], max_bytes, max_records
            )

        with self._lock:
            # not a change: it is not among the mutating methods
            return self._handle_change(
                "fetch_batches", list(positions), lambda where: where, str, fetch, duplicate_message=""
            )

    def log_dirs(
        self, topics: Sequence[str] | None = None, *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[int, tuple[LogDir, ...]]:
        """See `Cluster.log_dirs`. Fenced brokers do not respond."""
        with self._lock:
            return self._handle_read("log_dirs", topics or (), lambda: self._state.log_dirs(topics))

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """See `Cluster.quotas`."""

        def answer() -> dict[QuotaEntity, Mapping[str, float]]:
            held = self._state.quotas
            return {e: dict(held[e]) for e in (held if entities is None else entities) if e in held}

        with self._lock:
            return self._handle_read("quotas", map(str, entities or ()), answer)

    def scram_users(self, users: Sequence[str] | None = None) -> Mapping[str, Credentials]:
        """See `Cluster.scram_users`."""
        with self._lock:
            return self._handle_read("scram_users", users or (), lambda: self._state.scram.list_users(users))

    def can_log_in(self, user: str, mechanism: Mechanism, password: str) -> bool:
        """See `Cluster.can_log_in`."""
        with self._lock:
            return self._handle_read(
                "can_log_in", (user,), lambda: self._state.scram.can_log_in(user, mechanism, password)
            )

    def acls(self, principals: Sequence[str] | None = None) -> frozenset[Binding]:
        """See `Cluster.acls`."""
        with self._lock:
            return self._handle_read("acls", principals or (), lambda: self._access.describe(principals))

    def find_cluster_rights(self) -> frozenset[str] | None:
        """See `Cluster.find_cluster_rights`."""
        with self._lock:
            return self._handle_read("cluster_rights", (), self._access.find_cluster_rights)


def _find_broker_id_fault(resource: ConfigResource) -> Fault | None:
    if resource.scope is not ConfigScope.BROKER or not resource.name or resource.name.isdecimal():
        return None
    return Fault("INVALID_REQUEST", f"Broker id must be an integer, but it is: {resource.name}")
