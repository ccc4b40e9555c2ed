"""`MemoryCluster`: the port `Cluster` on brokers that exist only in this process."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from kdeclare.cluster.port import Alteration, ConfigQuery, Fault, FaultKind, NewPartitions, NewTopic, Result
from kdeclare.model.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.model.live import Broker, ClusterInfo, ConfigEntry, Move, Partition, Topic

from .configs import MAX_VALUE
from .controls import Controls
from .definitions import TOPIC_KEYS
from .faults import Call

Item = TypeVar("Item")
Answer = TypeVar("Answer")
K = TypeVar("K", bound=Hashable)

OLD_BROKER = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or updating "
    "the server version"
)


class MemoryCluster(Controls):
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
        return ClusterInfo(self._cluster_id, shown, self.rf_guard)

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """See `Cluster.topics`. Shows the state before the last change while ``stale_reads`` last."""
        with self._lock:
            return self._read("topics", names or (), lambda: self._seen_topics(names))

    def _seen_topics(self, names: Sequence[str] | None) -> dict[str, Topic]:
        if self._stale is not None and self._stale_left > 0:
            self._stale_left -= 1
            seen = self._stale
        else:
            seen = self._all_topics(names)
        return {n: seen[n] for n in (sorted(seen) if names is None else names) if n in seen}

    def _all_topics(self, names: Sequence[str] | None = None) -> dict[str, Topic]:
        state = self._state.topics
        return {
            name: Topic(
                name,
                state[name].topic_id,
                tuple(Partition(p.replicas, p.leader, p.isr) for p in state[name].partitions),
                state[name].internal,
            )
            for name in (state if names is None else names)
            if name in state
        }

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Mapping[str, ConfigEntry]]:
        """See `Cluster.configs`. Topics answer as the broker with the lowest id would."""
        with self._lock:
            asked = [_text(q.resource) for q in queries]
            return self._read(
                "configs",
                asked,
                lambda: {q.resource: self._described(q) for q in queries if self._exists(q.resource)},
            )

    def _described(self, query: ConfigQuery) -> dict[str, ConfigEntry]:
        configs = self._state.configs
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

    def _exists(self, resource: ConfigResource) -> bool:
        if resource.scope is ConfigScope.TOPIC:
            return resource.name in self._state.topics
        return not resource.name or (resource.name.isdecimal() and int(resource.name) in self._state.brokers)

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """See `Cluster.moves`. A tick follows when ``tick_on_poll`` is on."""
        with self._lock:
            found = self._read("moves", topics or (), lambda: self._state.moves(topics))
            if self.tick_on_poll:
                self.tick()
            return found

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """See `Cluster.record_counts`."""
        with self._lock:
            state = self._state.topics
            return self._read(
                "record_counts", topics, lambda: {n: state[n].records for n in topics if n in state}
            )

    # the port: changing

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """See `Cluster.create_topics`. Collisions are looked for among topics that existed before."""
        existing: list[frozenset[str]] = []

        def create(topic: NewTopic) -> None:
            if not existing:
                existing.append(frozenset(self._state.topics))
            self._state.create(topic, existing[0], validate_only=validate_only)

        _check_wire(value for topic in topics for value in topic.configs.values())
        return self._change(
            "create_topics",
            topics,
            lambda t: t.name,
            str,
            create,
            "Duplicate topic name.",
            validate_only,
        )

    def delete_topics(self, names: Sequence[str]) -> Mapping[str, Result]:
        """See `Cluster.delete_topics`."""
        return self._change(
            "delete_topics", list(dict.fromkeys(names)), lambda n: n, str, self._state.delete, ""
        )

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

    def close(self) -> None:
        """See `Cluster.close`."""
        self.closed = True

    # requests

    def _read(self, method: str, items: Iterable[str], answer: Callable[[], Answer]) -> Answer:
        return self._request(Call(method, tuple(items)), lambda _: answer())

    def _change(
        self,
        method: str,
        items: Sequence[Item],
        key: Callable[[Item], K],
        text: Callable[[K], str],
        act: Callable[[Item], None],
        twice: str,
        validate_only: bool = False,
    ) -> dict[K, Result]:
        """Do ``act`` item by item; what stands in a request twice is refused each time."""
        counts = Counter(key(item) for item in items)

        def answer(refused: Mapping[str, Fault]) -> dict[K, Result]:
            results: dict[K, Result] = {}
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
            try:
                return self._request(call, answer)
            finally:
                if before is not None and before != self._all_topics():
                    self._stale, self._stale_left = before, self.stale_reads

    def _request(self, call: Call, answer: Callable[[Mapping[str, Fault]], Answer]) -> Answer:
        rules = self.faults.due(call)
        for rule in rules:
            if rule.callback is not None:
                rule.callback(self.elsewhere())
        for rule in rules:
            if rule.before is not None:
                self._fail(call, rule.before(), "before")
        result = answer({rule.item: rule.fault() for rule in rules if rule.item and rule.fault})
        for rule in rules:
            if rule.after is not None:
                self._fail(call, rule.after(), "after")
        self.calls.append(call)
        return result

    def _fail(self, call: Call, error: BaseException, when: str) -> NoReturn:
        if isinstance(error, Fault):
            lost = "lost" if when == "before" else "unanswered"
            outcome = lost if error.kind is FaultKind.UNKNOWN else "failed"
        else:
            outcome = f"crashed {when}"
        self.calls.append(replace(call, outcome=outcome))
        raise error


def _attempt(act: Callable[[Item], None], item: Item) -> Result:
    try:
        act(item)
    except Fault as fault:
        return fault
    return None


def _check_wire(values: Iterable[str | None]) -> None:
    """A broker closes the connection on a string that is too long for the protocol."""
    if any(len((value or "").encode()) > MAX_VALUE for value in values):
        raise Fault("NETWORK_EXCEPTION", "socket disconnected", FaultKind.UNKNOWN)


def _text(resource: ConfigResource) -> str:
    return f"{resource.scope.value}/{resource.name}"
