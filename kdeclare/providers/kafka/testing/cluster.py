"""`MemoryCluster`: the port `Cluster` on brokers that exist only in this process."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar, cast

from kdeclare.core.live.collector import Patience
from kdeclare.core.live.faults import Created, Fault, FaultKind, Outcome, Result
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition, parse_broker_id
from kdeclare.providers.kafka.live import Broker, ClusterInfo, ConfigEntry, Move, Partition, Topic
from kdeclare.providers.kafka.port import (
    Alteration,
    ConfigQuery,
    Configs,
    LogDir,
    NewPartitions,
    NewTopic,
    whole,
)
from kdeclare.providers.kafka.testing.configs import MAX_VALUE
from kdeclare.providers.kafka.testing.configs import Configs as ConfigStore
from kdeclare.providers.kafka.testing.controls import Call, Controls
from kdeclare.providers.kafka.testing.definitions import TOPIC_KEYS
from kdeclare.providers.kafka.testing.topics import find_name_problem
from kdeclare.testing.faults import run_request

VERSION = "4.3"
"""The release that it takes after."""

OLD_BROKER = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
    "the server version"
)


Item = TypeVar("Item")
Answer = TypeVar("Answer")
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Requests(Controls):
    """The state, and how requests get to it; the requests themselves are those of `MemoryCluster`."""

    def _read(self, method: str, items: Iterable[str], answer: Callable[[], Answer]) -> Answer:
        return self._request(Call(method, tuple(items)), lambda _: answer())

    def _change(
        self,
        method: str,
        items: Sequence[Item],
        key: Callable[[Item], K],
        text: Callable[[K], str],
        act: Callable[[Item], R],
        twice: str,
        validate_only: bool = False,
    ) -> dict[K, Fault | R]:
        """Do ``act`` item by item; what stands in a request twice is refused each time."""
        counts = Counter(key(item) for item in items)

        def answer(refused: Mapping[str, Fault]) -> dict[K, Fault | R]:
            results: dict[K, Fault | R] = {}
            for item in items:
                name = key(item)
                if counts[name] > 1:
                    results[name] = Fault("INVALID_REQUEST", twice)
                elif text(name) in refused:
                    results[name] = refused[text(name)]
                else:
                    results[name] = _attempt(act, item)
            return results

        call = Call(method, tuple(text(key(item)) for item in items), validate_only)
        with self._lock:
            before = self._all_topics() if call.mutating and self.stale_reads else None
            configs = self._broker_overrides() if call.mutating and self.stale_configs else None
            try:
                return self._request(call, answer)
            finally:
                if configs is not None and configs != self._broker_overrides():
                    self._stale_configs, self._stale_configs_left = configs, self.stale_configs
                if before is not None and before != self._all_topics():
                    self._stale, self._stale_left = before, self.stale_reads

    def _request(self, call: Call, answer: Callable[[Mapping[str, Fault]], Answer]) -> Answer:
        def elsewhere() -> "MemoryCluster":
            return cast("MemoryCluster", self.elsewhere())

        return run_request(self.faults, self.calls, call, answer, elsewhere)

    def _broker_overrides(self) -> dict[ConfigResource, dict[str, str]]:
        found = self._state.configs.overrides
        return {r: dict(values) for r, values in found.items() if r.scope is ConfigScope.BROKER}

    def _all_topics(self, names: Sequence[str] | None = None) -> dict[str, Topic]:
        state = self._state.topics
        return {
            name: Topic(
                name,
                state[name].topic_id if self.topic_ids else "",
                tuple(Partition(p.replicas, p.leader, p.isr) for p in state[name].partitions),
                state[name].internal,
            )
            for name in (state if names is None else names)
            if name in state
        }


class MemoryCluster(Requests):
    """Kafka as `kdeclare` sees it, without brokers: for tests, and faithful where tests can tell.

    Time, brokers and records are set with the methods of `Controls`; ``faults`` says what goes wrong
    and when; ``calls`` is every request, in order. Safe to use from several threads.
    """

    # the port: reading

    def describe(self) -> ClusterInfo:
        """See `Cluster.describe`."""
        with self._lock:
            return self._read("describe", (), self._info)

    def _info(self) -> ClusterInfo:
        brokers = sorted(self._state.brokers.values(), key=lambda b: b.id)
        shown = tuple(Broker(b.id, "localhost", 9092 + b.id, b.rack, b.fenced) for b in brokers)
        return ClusterInfo(self._cluster_id, shown, self.rf_guard, self.principal, VERSION)

    def deadline_s(self) -> float:
        """See `Cluster.deadline_s`: as with real brokers and a request timeout of 30 seconds."""
        return 27.0

    def is_caught_up(self) -> bool:
        """See `Cluster.is_caught_up`; False while ``stale_reads`` or ``metadata_lag`` last."""
        with self._lock:
            lags = bool(self._unseen or self._ghosts)
            return not lags and (self._stale is None or self._stale_left == 0)

    def await_committed(self, patience: Patience) -> None:
        """See `Cluster.await_committed`; it ends at once: only reads bring these brokers forward."""

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """See `Cluster.topics`. Shows the state before the last change while ``stale_reads`` last."""
        with self._lock:
            return self._read("topics", names or (), lambda: self._seen_topics(names))

    def _seen_topics(self, names: Sequence[str] | None) -> dict[str, Topic]:
        if self._stale is not None and self._stale_left > 0:
            self._stale_left -= 1
            seen = self._stale
        else:
            seen = self._behind(self._all_topics(names))
        if names is not None and not self.hidden.isdisjoint(names):
            name = min(self.hidden.intersection(names))
            raise Fault("TOPIC_AUTHORIZATION_FAILED", f"topic {name}")
        shown = sorted(seen.keys() - self.hidden) if names is None else names
        return {n: seen[n] for n in shown if n in seen}

    def hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        """See `Cluster.hidden_topics`; those in ``hidden``."""
        with self._lock:
            return self._read("hidden_topics", names, lambda: self.hidden.intersection(names))

    def _behind(self, topics: dict[str, Topic]) -> dict[str, Topic]:
        """Topics as brokers show them that are ``metadata_lag`` behind; counts this read."""
        unseen, ghosts = self._unseen, self._ghosts
        shown = {n: t for n, t in topics.items() if self._state.topics[n].topic_id not in unseen}
        shown = {name: topic for name, (topic, _) in ghosts.items()} | shown
        self._unseen = {topic_id: left - 1 for topic_id, left in unseen.items() if left > 1}
        self._ghosts = {name: (topic, left - 1) for name, (topic, left) in ghosts.items() if left > 1}
        return shown

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """See `Cluster.configs`. Topics answer as the broker with the lowest id would."""
        return whole(self.configs_in_part(queries))

    def configs_in_part(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs | Fault]:
        """See `Cluster.configs_in_part`. As a request it is ``configs``, too.

        Shows the brokers' configs before the last change while ``stale_configs`` last.
        """

        def answer(refused: Mapping[str, Fault]) -> dict[ConfigResource, Configs | Fault]:
            found: dict[ConfigResource, Configs | Fault] = {}
            configs = self._seen_configs()
            for query in queries:
                fault = refused.get(_text(query.resource)) or _no_broker(query.resource)
                if fault is not None or self._is_shown(query.resource):
                    found[query.resource] = fault or self._described(query, configs)
            return found

        with self._lock:
            return self._request(Call("configs", tuple(_text(q.resource) for q in queries)), answer)

    def _seen_configs(self) -> ConfigStore:
        configs = self._state.configs
        if self._stale_configs_left == 0:
            return configs
        self._stale_configs_left -= 1
        others = {r: v for r, v in configs.overrides.items() if r.scope is not ConfigScope.BROKER}
        return replace(configs, overrides={**others, **self._stale_configs})

    def _described(self, query: ConfigQuery, configs: ConfigStore) -> dict[str, ConfigEntry]:
        resource = query.resource
        names = query.keys | (configs.of(resource).keys() if query.overrides else frozenset())
        found: dict[str, ConfigEntry] = {}
        for name in sorted(names):
            if resource.scope is ConfigScope.TOPIC:
                entry = configs.topic_entry(resource.name, name) if name in TOPIC_KEYS else None
            elif resource.name:
                entry = configs.broker_entry(int(resource.name), name)
            else:
                entry = configs.cluster_entry(name)
            if entry is not None:
                found[name] = entry
        return found

    def _is_shown(self, resource: ConfigResource) -> bool:
        """Whether a broker knows it that is ``metadata_lag`` behind."""
        if not self._exists(resource):
            return False
        topic = self._state.topics.get(resource.name) if resource.scope is ConfigScope.TOPIC else None
        return topic is None or topic.topic_id not in self._unseen

    def _exists(self, resource: ConfigResource) -> bool:
        if resource.scope is ConfigScope.TOPIC:
            return resource.name in self._state.topics
        return not resource.name or parse_broker_id(resource.name) in self._state.brokers

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """See `Cluster.moves`. A tick follows when ``tick_on_poll`` is on."""
        with self._lock:
            found = self._read("moves", topics or (), lambda: self._state.moves(topics))
            if self.tick_on_poll:
                self.tick()
            return found

    def earlier_moves(self) -> Set[TopicPartition]:
        """See `Cluster.earlier_moves`; these brokers are asked each time."""
        return self.moves().keys()

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """See `Cluster.record_counts`."""
        with self._lock:
            state = self._state.topics
            shown = [n for n in topics if n in state and state[n].topic_id not in self._unseen]
            return self._read("record_counts", topics, lambda: {n: state[n].records for n in shown})

    def log_dirs(self, topics: Sequence[str] | None = None) -> Mapping[int, tuple[LogDir, ...]]:
        """See `Cluster.log_dirs`. Fenced brokers do not answer."""
        with self._lock:
            return self._read("log_dirs", topics or (), lambda: self._state.log_dirs(topics))

    # the port: changing

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        """See `Cluster.create_topics`. Collisions are looked for among topics that existed before."""
        existing: list[frozenset[str]] = []

        def create(topic: NewTopic) -> Created | None:
            if not existing:
                existing.append(frozenset(self._state.topics))
            self._state.create(topic, existing[0], validate_only=validate_only)
            return None if validate_only else self._made(topic.topic)

        _check_wire(value for topic in topics for value in topic.config_texts.values())
        return self._change(
            "create_topics",
            topics,
            lambda t: t.topic,
            str,
            create,
            "Duplicate topic name.",
            validate_only,
        )

    def _made(self, name: str) -> Created:
        topic_id = self._state.topics[name].topic_id
        if self.metadata_lag:
            self._unseen[topic_id] = self.metadata_lag
        return Created(topic_id if self.topic_ids else "")

    def delete_topics(self, targets: Mapping[str, str | None]) -> Mapping[str, Result]:
        """See `Cluster.delete_topics`."""
        if not self.topic_ids and any(topic_id is not None for topic_id in targets.values()):
            raise Fault("UNSUPPORTED_VERSION", "The brokers do not know topic ids.")

        def delete(name: str) -> None:
            gone = self._all_topics([name])
            self._state.delete(name, targets[name])
            if self.metadata_lag:
                self._ghosts |= {n: (topic, self.metadata_lag) for n, topic in gone.items()}

        return self._change("delete_topics", list(targets), lambda n: n, str, delete, "")

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """See `Cluster.create_partitions`."""
        return self._change(
            "create_partitions",
            items,
            lambda n: n.topic,
            str,
            lambda n: self._state.add_partitions(n, validate_only=validate_only),
            "Duplicate topic name.",
            validate_only,
        )

    def alter_configs(
        self, items: Sequence[Alteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """See `Cluster.alter_configs`."""

        def alter(item: Alteration) -> None:
            if not self._exists(item.resource):
                if item.resource.scope is ConfigScope.TOPIC:
                    _check_topic_name(item.resource.name)
                    self._state.configs.altered(item.resource, item.ops)  # its own words come first
                    raise Fault(
                        "UNKNOWN_TOPIC_OR_PARTITION", f"The topic '{item.resource.name}' does not exist."
                    )
                # only that broker could answer, and there is nobody to send it to
                raise Fault("NETWORK_EXCEPTION", f"broker {item.resource.name}", FaultKind.RETRIABLE)
            after = self._state.configs.altered(item.resource, item.ops)
            if not validate_only:
                self._state.configs.store(item.resource, after)

        _check_wire(op.value for item in items for op in item.ops)
        return self._change(
            "alter_configs",
            items,
            lambda a: a.resource,
            _text,
            alter,
            "Each resource must appear at most once.",
            validate_only,
        )

    def quotas(
        self, entities: Sequence[QuotaEntity] | None = None
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """See `Cluster.quotas`."""

        def answer() -> dict[QuotaEntity, Mapping[str, float]]:
            held = self._state.quotas
            return {e: dict(held[e]) for e in (held if entities is None else entities) if e in held}

        with self._lock:
            return self._read("quotas", map(str, entities or ()), answer)

    def alter_quotas(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        """See `Cluster.alter_quotas`."""
        return self._change(
            "alter_quotas",
            list(items),
            lambda entity: entity,
            str,
            lambda e: self._state.alter_quota(e, items[e], validate_only=validate_only),
            "",
            validate_only,
        )

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """See `Cluster.reassign`."""
        guarded = not allow_replication_factor_change
        if guarded and not self.rf_guard and not unguarded:
            raise Fault("UNSUPPORTED_VERSION", OLD_BROKER)
        guarded = guarded and self.rf_guard
        return self._change(
            "reassign",
            list(targets),
            lambda tp: tp,
            str,
            lambda tp: self._state.reassign(tp, targets[tp], guarded=guarded),
            "",
        )

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """See `Cluster.elect_leaders`."""
        asked = list(dict.fromkeys(partitions))
        return self._change("elect_leaders", asked, lambda tp: tp, str, self._state.elect, "")

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """See `Cluster.move_log_dirs`. Each broker has one directory, so that nothing ever moves."""
        return self._change(
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


def _check_wire(values: Iterable[str | None]) -> None:
    """A broker closes the connection on a string that is too long for the protocol."""
    if any(len((value or "").encode()) > MAX_VALUE for value in values):
        raise Fault("NETWORK_EXCEPTION", "socket disconnected", FaultKind.UNKNOWN)


def _check_topic_name(name: str) -> None:
    if not name:
        raise Fault("INVALID_REQUEST", "Default topic resources are not allowed.")
    wrong = find_name_problem(name)
    if wrong is not None:
        raise Fault("INVALID_TOPIC_EXCEPTION", wrong)


def _no_broker(resource: ConfigResource) -> Fault | None:
    if resource.scope is not ConfigScope.BROKER or not resource.name or resource.name.isdecimal():
        return None
    return Fault("INVALID_REQUEST", f"Broker id must be an integer, but it is: {resource.name}")


def _text(resource: ConfigResource) -> str:
    return f"{resource.scope.value}/{resource.name}"


def _attempt(act: Callable[[Item], R], item: Item) -> Fault | R:
    try:
        return act(item)
    except Fault as fault:
        return fault
