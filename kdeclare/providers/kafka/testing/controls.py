"""Methods with which tests control the in-memory cluster: time, brokers, records, copies and faults."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.consumer_group.group import GroupMember, GroupType
from kdeclare.providers.kafka.ids import ConfigResource, TopicPartition
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.request_values import ActiveProducer, RecordBatch
from kdeclare.providers.kafka.testing.access import Access
from kdeclare.providers.kafka.testing.configs import CLUSTER_WIDE, MIN_ISR, ConfigStore
from kdeclare.providers.kafka.testing.controller import Controller
from kdeclare.providers.kafka.testing.groups import GroupRecord
from kdeclare.providers.kafka.testing.partitions import PartitionState
from kdeclare.providers.kafka.testing.restrictions import Restrictions
from kdeclare.providers.kafka.testing.topics import BrokerState
from kdeclare.testing import faults
from kdeclare.testing.faults import FaultPlan

if TYPE_CHECKING:
    from kdeclare.providers.kafka.testing.cluster import MemoryCluster


MUTATING_METHODS = frozenset(
    {
        "create_topics",
        "delete_topics",
        "create_partitions",
        "alter_configs",
        "alter_quotas",
        "alter_scram_users",
        "create_acls",
        "delete_acls",
        "reassign",
        "elect_leaders",
        "move_log_dirs",
        "alter_offsets",
        "delete_groups",
    }
)
"""The methods of `Cluster` that change the cluster, unless they only validate the request."""


@dataclass(frozen=True, slots=True)
class Call(faults.Call):
    """One logged request: the method of `Cluster`, and the items of the request.

    The form of an item is ``orders`` or ``TOPIC/orders``, ``orders-0`` for a partition, ``billing/orders-0``
    for the offset of a group, or ``orders-0@1`` for a replica on broker 1.
    """

    @property
    def is_mutating(self) -> bool:
        """Whether the request would change the cluster."""
        return self.method in MUTATING_METHODS and not self.validate_only


def format_resource(resource: ConfigResource) -> str:
    """Return the name of a resource in the records of requests, such as ``TOPIC/orders``."""
    return f"{resource.scope.value}/{resource.name}"


class ClusterControls:
    """The state of the cluster, and the methods with which tests read and change the state.

    brokers: the rack by broker id.
    move_ticks: the number of ticks that a reassignment takes; with 0, it completes within the request.
    stalled: brokers to which no replica is copied, as if they were fenced.
    tick_on_poll: whether every call of ``moves`` advances time by one tick after responding.
    stale_reads: after each change, the number of calls of ``topics`` that still return the previous metadata.
    stale_configs: after each change, the number of calls of ``configs`` that still return the previous broker
        configs. `is_caught_up` ignores this setting, because a broker applies its configs after its metadata.
    metadata_lag: the number of calls of ``topics`` during which brokers do not show a created topic yet and
        still show a deleted topic. With ``math.inf``, the brokers lag until `catch_up` is called. The
        controller does not lag: validate-only requests use the current state.
    topic_ids: whether the brokers support topic ids (KIP-516).
    rf_guard: whether the brokers support AllowReplicationFactorChange (KIP-860).
    principal, sasl_mechanism: the principal of the client, and its SASL mechanism. Tests can set both.
    has_authorizer: whether the brokers have an authorizer, so that ACLs can exist. Tests can set it.
    is_super_user: whether the client has all permissions, regardless of the ACLs. Otherwise, requests about
        ACLs, groups and records need permissions of ``principal``. Other requests need none. Tests can set
        it.
    hidden: topics that the client is not allowed to describe. Tests can set them.
    restrictions: what the brokers refuse or hide, as managed clusters do. Tests can set them.
    elr: whether eligible leader replicas are enabled, as in a freshly formatted cluster since 4.1. The
        cluster then has a cluster-wide ``min.insync.replicas`` of 1 that cannot be deleted.
    tiered: whether ``remote.log.storage.system.enable`` is set.
    static: the server.properties of every broker.
    seed: the seed for the placement of replicas, the only random choice.

    Every broker has one log directory, ``/memory``. A record takes 1000 bytes and has no key (`set_batches`
    only affects what is fetched), and the records of a topic are spread evenly: each replica has
    ``records * 1000 // partitions`` bytes. A replica that is being added starts with 0 bytes and grows with
    each tick. The behavior does not depend on the clock.
    """

    def __init__(
        self,
        brokers: Mapping[int, str | None] | None = None,
        *,
        cluster_id: str = "memory",
        move_ticks: int = 0,
        tick_on_poll: bool = True,
        stale_reads: int = 0,
        stale_configs: int = 0,
        metadata_lag: float = 0,
        topic_ids: bool = True,
        rf_guard: bool = True,
        elr: bool = True,
        tiered: bool = False,
        static: Mapping[str, str] | None = None,
        seed: int = 0,
    ) -> None:
        racks = {1: "a", 2: "b", 3: "c"} if brokers is None else dict(brokers)
        configs = ConfigStore(min(racks), tiered, elr)
        configs.static = {
            broker: _build_properties(broker, rack, static or {}) for broker, rack in racks.items()
        }
        if elr:
            configs.store(CLUSTER_WIDE, {MIN_ISR: "1"})
        self._state = Controller(
            {broker: BrokerState(broker, rack) for broker, rack in racks.items()},
            configs,
            Random(seed),
            move_ticks=move_ticks,
        )
        self._lock = RLock()
        self._cluster_id = cluster_id
        self._stale_topics: dict[str, Topic] | None = None
        self._stale_reads_left = 0
        self._stale_configs: dict[ConfigResource, dict[str, str]] = {}
        self._stale_configs_left = 0
        self._invisible_topics: dict[str, float] = {}
        self._deleted_topics: dict[str, tuple[Topic, float]] = {}
        self.metadata_lag = metadata_lag
        self.topic_ids = topic_ids
        self.rf_guard = rf_guard
        self.principal: str | None = None
        self.sasl_mechanism: str | None = None
        self.has_authorizer = True
        self.is_super_user = True
        self.hidden: frozenset[str] = frozenset()
        self.restrictions = Restrictions()
        self.tick_on_poll = tick_on_poll
        self.stale_reads = stale_reads
        self.stale_configs = stale_configs
        self.faults: FaultPlan[MemoryCluster] = FaultPlan()
        self.calls: list[Call] = []
        self.closed = False

    # time

    def tick(self, times: int = 1) -> None:
        """Advance time by a number of ticks: moves progress, and replicas of active brokers catch up."""
        with self._lock:
            for _ in range(times):
                self._state.tick()

    @property
    def move_ticks(self) -> int:
        """The number of ticks that a new reassignment takes."""
        return self._state.move_ticks

    @move_ticks.setter
    def move_ticks(self, ticks: int) -> None:
        self._state.move_ticks = ticks

    @property
    def usable(self) -> dict[int, int]:
        """Free bytes on the disk of each broker. Brokers without an entry do not report free bytes."""
        return self._state.usable

    @property
    def disk_sizes(self) -> dict[int, int]:
        """Total bytes of the disk of each broker. Brokers without an entry do not report them."""
        return self._state.disk_sizes

    @property
    def stalled(self) -> set[int]:
        """Brokers to which no replica is copied. Tests can change the set."""
        return self._state.stalled

    def catch_up(self) -> None:
        """Make the brokers catch up with the controller. ``metadata_lag`` applies again to later changes."""
        with self._lock:
            self._invisible_topics, self._deleted_topics = {}, {}

    # brokers, records, partitions

    def produce(self, topic: str, records: int = 1, *, at_ms: int | None = None) -> None:
        """Put records into a topic. Raises KeyError if the topic does not exist.

        at_ms: the timestamp of all records of the topic, except in partitions for which `set_log` sets
            timestamps.
        """
        with self._lock:
            state = self._state.topics[topic]
            state.records += records
            if at_ms is not None:
                self._state.group_store.last_times[state.topic_id] = at_ms

    def set_log(self, where: TopicPartition, *, start: int = 0, times: Sequence[int] = ()) -> None:
        """Set the first offset of a partition, and the timestamps of its records in milliseconds."""
        with self._lock:
            key = (self._state.topics[where.topic].topic_id, where.partition)
            self._state.group_store.starts[key] = start
            if times:
                self._state.group_store.times[key] = list(times)

    def set_producers(self, where: TopicPartition, *producers: ActiveProducer) -> None:
        """Set the active producers of a partition."""
        with self._lock:
            key = (self._state.topics[where.topic].topic_id, where.partition)
            self._state.group_store.producers[key] = producers

    def set_batches(self, where: TopicPartition, *batches: RecordBatch) -> None:
        """Set the last batches of a partition. The topic must already contain their records."""
        with self._lock:
            key = (self._state.topics[where.topic].topic_id, where.partition)
            self._state.group_store.batches[key] = batches

    def add_group(self, group: str, type_: GroupType = GroupType.CLASSIC, protocol: str = "consumer") -> None:
        """Add a group without members and without offsets."""
        with self._lock:
            is_classic = type_ is GroupType.CLASSIC
            record = GroupRecord(type_, protocol if is_classic else type_.value)
            self._state.group_store.groups[group] = record

    def set_members(self, group: str, *members: GroupMember) -> None:
        """Set the members of a group. Without members, the group is empty."""
        with self._lock:
            groups = self._state.group_store.groups
            groups.setdefault(group, GroupRecord(protocol="consumer")).members = list(members)

    def set_broker(
        self, broker: int, *, rack: str | None = None, fenced: bool = False, shutting_down: bool = False
    ) -> None:
        """Register a broker, or change a registered broker."""
        with self._lock:
            self._state.configs.static.setdefault(broker, _build_properties(broker, rack, {}))
            self._state.set_broker(BrokerState(broker, rack, fenced, shutting_down))

    def unregister_broker(self, broker: int) -> None:
        """Remove a broker from the cluster."""
        with self._lock:
            self._state.unregister_broker(broker)

    def fence(self, broker: int, fenced: bool = True) -> None:
        """Fence or unfence a broker. The replicas of an unfenced broker catch up at the next tick."""
        with self._lock:
            self._state.set_broker(replace(self._state.brokers[broker], fenced=fenced))

    def set_static(self, broker: int, values: Mapping[str, str]) -> None:
        """Change a broker's server.properties, as if the broker had been restarted with new properties."""
        with self._lock:
            rack = self._state.brokers[broker].rack
            self._state.configs.static[broker] = _build_properties(broker, rack, values)

    def set_partition(self, topic_partition: TopicPartition, state: PartitionState) -> None:
        """Set the state of one partition, for states that are hard to create with requests."""
        with self._lock:
            self._state.topics[topic_partition.topic].partitions[topic_partition.partition] = state

    def partition(self, where: TopicPartition) -> PartitionState:
        """Return the state of one partition in the controller. Raises Fault if it does not exist."""
        with self._lock:
            return self._state.partition(where)

    def mark_internal(self, topic: str) -> None:
        """Mark a topic as internal in the metadata."""
        with self._lock:
            self._state.topics[topic].internal = True

    def set_overrides(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        """Store overrides without any validation."""
        with self._lock:
            self._state.configs.store(resource, values)

    # reading the whole state

    def overrides(self, resource: ConfigResource | None = None) -> dict[Any, Any]:
        """Return the stored overrides of one resource or, without an argument, of all resources."""
        with self._lock:
            if resource is not None:
                return dict(self._state.configs.of(resource))
            return {r: dict(v) for r, v in sorted(self._state.configs.overrides.items())}

    def get_effective_min_isr(self, topic: str) -> int:
        """Return the effective min.insync.replicas of a topic."""
        with self._lock:
            return self._state.get_effective_min_isr(topic)

    def dump(self, *, ids: bool = False) -> Mapping[str, Any]:
        """Return all state that clients can see. Clusters that clients cannot distinguish have equal results.

        ids: whether to include topic ids, which change if a topic is deleted and created again.
        """
        with self._lock:
            topics = {
                name: {
                    "records": topic.records,
                    "partitions": [asdict(p) for p in topic.partitions],
                    **({"id": topic.topic_id} if ids else {}),
                }
                for name, topic in sorted(self._state.topics.items())
            }
            configs = {
                format_resource(r): dict(sorted(v.items()))
                for r, v in sorted(self._state.configs.overrides.items())
            }
            brokers = {str(b.id): asdict(b) for b in self._state.brokers.values()}
            quotas = {str(entity): dict(limits) for entity, limits in self._state.quotas.items()}
            sections: dict[str, Any] = {"brokers": brokers, "configs": configs, "topics": topics}
            if quotas:
                sections["quotas"] = dict(sorted(quotas.items()))
            if self._state.scram:
                sections["scram"] = self._state.scram.describe()
            if self._state.acls:
                sections["acls"] = sorted(map(str, self._state.acls))
            groups = {
                id_: {f"{topic}-{n}": asdict(offset) for (topic, n), offset in sorted(record.offsets.items())}
                for id_, record in sorted(self._state.group_store.groups.items())
            }
            if groups:
                sections["groups"] = groups
            return sections

    @property
    def _access(self) -> Access:
        """The ACLs that this client can read and change."""
        principal = None if self.is_super_user else self.principal
        return Access(self._state.acls, self.has_authorizer, self.is_super_user, principal)

    def requests(self, method: str | None = None) -> list[Call]:
        """Return the logged requests of one method or, without an argument, all mutating requests."""
        with self._lock:
            return [c for c in self.calls if (c.is_mutating if method is None else c.method == method)]

    # other clients

    def elsewhere(self) -> Self:
        """Return a second client of the same cluster, without any logged requests or faults."""
        other = copy.copy(self)
        other.faults = FaultPlan()
        other.calls = []
        other.stale_reads = other.stale_configs = 0
        other._stale_topics = None
        other._stale_configs_left = 0
        other.metadata_lag = 0
        other._invisible_topics, other._deleted_topics = {}, {}
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent cluster with the same state, without any logged requests or faults."""
        with self._lock:
            twin = copy.copy(self)
            twin._state = copy.deepcopy(self._state, memo)
            twin._stale_topics = copy.deepcopy(self._stale_topics, memo)
            twin._stale_configs = copy.deepcopy(self._stale_configs, memo)
        twin._lock = RLock()
        twin.faults = FaultPlan()
        twin.calls = []
        return twin


def _build_properties(broker: int, rack: str | None, static: Mapping[str, str]) -> dict[str, str]:
    return {"node.id": str(broker), **({} if rack is None else {"broker.rack": rack}), **static}
