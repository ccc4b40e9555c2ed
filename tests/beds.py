"""The common operations of contract and conformance tests, on in-memory clusters and on real Kafka."""

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Mapping

from kdeclare.core.live.faults import CreatedObject, Fault, Outcome, Result
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigEntry, Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import (
    ConfigAlteration,
    ConfigOp,
    ConfigQuery,
    NewPartitions,
    NewTopic,
    RecordBatch,
)
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.polling import retry_until_passes
from tests.served import ServedCluster

SET, DELETE, APPEND, SUBTRACT = FieldOp.SET, FieldOp.DELETE, FieldOp.APPEND, FieldOp.SUBTRACT
CLUSTER_WIDE = ConfigResource(ConfigScope.BROKER, "")


def all_created(results: Mapping[str, Outcome]) -> bool:
    """Whether every topic of a request was created."""
    return all(isinstance(result, CreatedObject) for result in results.values())


def topic_resource(name: str) -> ConfigResource:
    """Return a topic as a config resource."""
    return ConfigResource(ConfigScope.TOPIC, name)


def broker_resource(broker: int) -> ConfigResource:
    """Return a broker as a config resource."""
    return ConfigResource(ConfigScope.BROKER, str(broker))


class Bed:
    """The shared part of all beds."""

    cluster: Cluster

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.prefix = f"t{uuid.uuid4().hex[:8]}"
        self._names = itertools.count(1)
        self._seen: set[str] = set()
        self._altered: dict[ConfigResource, set[str]] = {}

    def eventually(self, check: Callable[[], None]) -> None:
        """Check once, because nothing is asynchronous."""
        check()

    def name(self, suffix: str = "") -> str:
        """Return a new topic name; the topic is deleted at the end if it exists."""
        name = f"{self.prefix}-{next(self._names)}{suffix}"
        self._seen.add(name)
        return name

    def delete_at_end(self, name: str) -> str:
        """Delete the topic of exactly this name at the end."""
        self._seen.add(name)
        return name

    @property
    def brokers(self) -> tuple[int, ...]:
        """Return the ids of the brokers."""
        return tuple(b.id for b in self.cluster.describe().brokers)

    def create(
        self,
        assignments: Mapping[int, tuple[int, ...]] | None = None,
        *,
        name: str | None = None,
        partitions: int | None = 1,
        factor: int | None = 1,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic, which must succeed, and return its name."""
        name = name or self.name()
        if assignments is not None:
            partitions = factor = None
        new = NewTopic(name, partitions, factor, assignments, configs or {})
        assert all_created(self.cluster.create_topics([new]))
        count = len(assignments) if assignments else partitions

        def visible() -> None:
            found = self.topic(name).partitions
            assert len(found) == count or count is None
            assert all(len(p.isr) == len(p.replicas) for p in found)

        self.eventually(visible)
        return name

    def add_partitions(
        self, name: str, total: int, assignments: tuple[tuple[int, ...], ...] | None = None
    ) -> Result:
        """Send CreatePartitions for one topic."""
        return self.cluster.create_partitions([NewPartitions(name, total, assignments)])[name]

    def topic(self, name: str) -> Topic:
        """Return one topic, which must exist."""
        found = self.cluster.topics([name])
        assert name in found
        return found[name]

    def alter(
        self, resource: ConfigResource, *ops: tuple[str, FieldOp, str | None], validate_only: bool = False
    ) -> Result:
        """Send IncrementalAlterConfigs for one resource."""
        item = ConfigAlteration(resource, tuple(ConfigOp(*op) for op in ops))
        if resource.scope is ConfigScope.BROKER:
            self._altered.setdefault(resource, set()).update(op[0] for op in ops)
        return self.cluster.alter_configs([item], validate_only=validate_only)[resource]

    def describe(self, resource: ConfigResource, *keys: str) -> Mapping[str, ConfigEntry]:
        """Return the overrides and the given keys of a resource."""
        query = ConfigQuery(resource, frozenset(keys), overrides=True)
        return self.cluster.configs([query]).get(resource, {})

    def entry(self, resource: ConfigResource, key: str) -> ConfigEntry:
        """Return one described key, which must exist."""
        return self.cluster.configs([ConfigQuery(resource, frozenset({key}))])[resource][key]

    def overrides(self, resource: ConfigResource) -> dict[str, str | None]:
        """Return the overrides of a resource as described."""
        return {key: entry.value for key, entry in self.describe(resource).items()}

    def expect_overrides(self, resource: ConfigResource, expected: Mapping[str, str | None]) -> None:
        """Wait until the overrides are exactly these."""

        def check() -> None:
            assert self.overrides(resource) == expected

        self.eventually(check)

    def move(
        self, name: str, partition: int, target: tuple[int, ...] | None, *, grow: bool = False
    ) -> Result:
        """Send AlterPartitionReassignments for one partition."""
        where = TopicPartition(name, partition)
        return self.cluster.reassign({where: target}, allow_replication_factor_change=grow)[where]

    def elect(self, name: str, partition: int) -> Result:
        """Send ElectLeaders for one partition."""
        where = TopicPartition(name, partition)
        return self.cluster.elect_leaders([where])[where]

    def log_dir(self, broker: int) -> str:
        """Return the path of a broker's log directory."""
        return self.cluster.log_dirs([])[broker][0].path

    def sizes(self, name: str) -> dict[int, dict[int, int]]:
        """Return the bytes of each partition of a topic, by broker."""
        return {
            broker: {at.partition: size for found in dirs for at, size in found.sizes.items()}
            for broker, dirs in self.cluster.log_dirs([name]).items()
        }

    def clean(self) -> None:
        """Delete the topics that were created, and reset the broker keys that were set."""
        there = list(self.cluster.topics(sorted(self._seen))) if self._seen else []
        for name in there:
            stuck = list(self.cluster.moves([name]))
            if stuck:
                self.cluster.reassign(dict.fromkeys(stuck), allow_replication_factor_change=True)
        if there:
            self.cluster.delete_topics(dict.fromkeys(there))
        for resource, keys in self._altered.items():
            for key in keys & self.overrides(resource).keys():
                self.cluster.alter_configs([ConfigAlteration(resource, (ConfigOp(key, DELETE, None),))])


class MemoryBed(Bed):
    """The in-memory cluster. memory: the cluster that tests control; ``cluster`` is its client."""

    def __init__(self, memory: MemoryCluster, cluster: Cluster | None = None) -> None:
        super().__init__(cluster or memory)
        self.memory = memory
        self._batches: dict[str, list[RecordBatch]] = {}
        memory.tick_on_poll = False

    def produce(self, topic: str, records: int) -> None:
        """Write records to a topic."""
        self.memory.produce(topic, records)

    def produce_batch(self, topic: str, records: int, keyed: int, value_bytes: int) -> None:
        """Write one batch to a topic with one partition. keyed: how many of the first records have keys."""
        size = 61 + (8 + value_bytes) * records + 3 * keyed
        batches = self._batches.setdefault(topic, [])
        batches.append(RecordBatch(size, records, records, keyed))
        self.memory.produce(topic, records)
        self.memory.set_batches(TopicPartition(topic, 0), *batches)

    def hold_moves(self, topic: str) -> None:
        """Keep reassignments in flight until they are released."""
        self.memory.move_ticks = 1

    def release_moves(self) -> None:
        """Let reassignments finish."""
        self.memory.move_ticks = 0
        self.memory.tick()


class ServedBed(MemoryBed):
    """The in-memory cluster on real ports, with kdeclare's real client."""

    def __init__(self, cluster: Cluster, served: ServedCluster) -> None:
        super().__init__(served.memory, cluster)
        self.served = served


class KafkaBed(Bed):
    """Real brokers."""

    def __init__(self, cluster: Cluster, bootstrap: str) -> None:
        super().__init__(cluster)
        self._bootstrap = bootstrap

    def eventually(self, check: Callable[[], None]) -> None:
        """Repeat the check for up to a minute."""
        retry_until_passes(check, seconds=60, every=0.05, errors=(AssertionError, KeyError, Fault))

    def produce(self, topic: str, records: int, size: int = 10) -> None:
        """Write records to a topic, round robin across its partitions."""
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self._bootstrap)
        count = len(self.topic(topic).partitions)
        for number in range(records):
            producer.send(topic, b"x" * size, partition=number % count)
        producer.flush()
        producer.close()

    def produce_batch(self, topic: str, records: int, keyed: int, value_bytes: int) -> None:
        """Write one batch to a topic with one partition. keyed: how many of the first records have keys."""
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self._bootstrap, linger_ms=10_000, batch_size=2**20)
        for number in range(records):
            producer.send(topic, b"x" * value_bytes, key=b"key" if number < keyed else None, partition=0)
        producer.flush()
        producer.close()

    def hold_moves(self, topic: str) -> None:
        """Fill the topic and throttle its replication to one byte per second."""
        self.produce(topic, 20 * len(self.topic(topic).partitions), 50_000)
        for broker in self.brokers:
            assert self.alter(broker_resource(broker), *self._rates(SET, "1")) is None
        lists = [(f"{side}.replication.throttled.replicas", SET, "*") for side in ("leader", "follower")]
        assert self.alter(topic_resource(topic), *lists) is None
        # Brokers apply their throttles after a delay, and no request shows when.
        time.sleep(0.5)

    def release_moves(self) -> None:
        """Remove the throttles."""
        for broker in self.brokers:
            assert self.alter(broker_resource(broker), *self._rates(DELETE, None)) is None

    def _rates(self, op: FieldOp, value: str | None) -> Iterable[tuple[str, FieldOp, str | None]]:
        return [(f"{side}.replication.throttled.rate", op, value) for side in ("leader", "follower")]


AnyBed = MemoryBed | KafkaBed


def get_error(result: Outcome) -> str | None:
    """Return the error's name; None for success."""
    return result.error if isinstance(result, Fault) else None


def get_message(result: Outcome) -> str:
    """Return Kafka's error message."""
    assert isinstance(result, Fault)
    return result.message
