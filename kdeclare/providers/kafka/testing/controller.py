"""The controller's changes to partitions and quotas: moves, elections, ticks of time, broker failures.

Modeled on ReplicationControlManager and ClientQuotaControlManager of Apache Kafka. Methods that reject a
request raise Fault with Kafka's error name and message, without changing anything.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.client_quota.entity import LIMITS, EntityType, QuotaEntity
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from kdeclare.providers.kafka.request_values import LogDir
from kdeclare.providers.kafka.testing.batches import RECORD_BYTES
from kdeclare.providers.kafka.testing.configs import MIN_ISR
from kdeclare.providers.kafka.testing.groups import GroupStore
from kdeclare.providers.kafka.testing.partitions import (
    Ids,
    PartitionState,
    advance_copies,
    cancel_move,
    catch_up,
    complete_move,
    compute_copied_size,
    list_lagging_replicas,
    needs_unclean_election,
    start_reassignment,
)
from kdeclare.providers.kafka.testing.scram import ScramStore
from kdeclare.providers.kafka.testing.topics import BrokerState, TopicStore

_EPSILON = 1e-6
_MAX_LONG = 2**63


def validate_quota(entity: QuotaEntity, limits: Mapping[str, float | None]) -> None:
    """Check the requested limits of one entity. Raises Fault."""
    _validate_entity(entity)
    for key, value in limits.items():
        if value is None:
            continue  # removing an unknown key is allowed
        info = LIMITS.get(key)
        if info is None or info.is_for_ips is not entity.is_ip:
            raise _build_invalid_fault(f"Invalid configuration key {key}")
        if value <= 0:
            raise _build_invalid_fault(f"Quota {key} must be greater than 0")
        if info.is_whole and _MAX_LONG > value != value // 1 and abs(round(value) - value) > _EPSILON:
            raise _build_invalid_fault(f"{key} cannot be a fractional value.")


def _validate_entity(entity: QuotaEntity) -> None:
    names = dict(entity.parts)
    if not names:
        raise _build_invalid_fault("Invalid empty client quota entity")
    for type_, name in entity.parts:
        if name == "":
            raise _build_invalid_fault(f"Empty {type_} not supported")
    if entity.is_ip and len(names) > 1:
        raise _build_invalid_fault(
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        )
    address = names.get(EntityType.IP)
    if address is not None and address != "localhost" and not _is_address(address):
        raise _build_invalid_fault(f"{address} is not a valid IP or resolvable host.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _build_invalid_fault(message: str) -> Fault:
    return Fault("INVALID_REQUEST", message)


LOG_DIR = "/memory"
"""The only log directory of every broker."""


@dataclass
class Controller(TopicStore):
    """All topics and brokers, with the moves in progress.

    move_ticks: the number of ticks that a move takes; with 0, a move completes within the request.
    stalled: brokers to which no replica is copied.
    usable: free bytes on the disk of each broker. Brokers that are not in the mapping do not report free
        bytes.
    disk_sizes: the total bytes of the disk of each broker that reports them.
    quotas: the limits of each entity that has limits.
    scram: the SCRAM credentials of users.
    acls: the ACL bindings.
    group_store: all groups with their offsets.
    """

    move_ticks: int = 0
    stalled: set[int] = field(default_factory=set)
    usable: dict[int, int] = field(default_factory=dict)
    disk_sizes: dict[int, int] = field(default_factory=dict)
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    scram: ScramStore = field(default_factory=ScramStore)
    acls: set[Binding] = field(default_factory=set)
    group_store: GroupStore = field(default_factory=GroupStore)

    # moves

    def partition(self, where: TopicPartition) -> PartitionState:
        """Return one partition. Raises Fault UNKNOWN_TOPIC_OR_PARTITION."""
        topic = self.topics.get(where.topic)
        if topic is None:
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find a topic named {where.topic}.")
        if not 0 <= where.partition < len(topic.partitions):
            raise Fault(
                "UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find partition {where.topic}:{where.partition}."
            )
        return topic.partitions[where.partition]

    def reassign(self, topic_partition: TopicPartition, target: Ids | None, *, is_guarded: bool) -> None:
        """Handle AlterPartitionReassignments for one partition. A ``target`` of None cancels the move.

        The replication factor guard does not apply to cancellations.
        """
        state = self.partition(topic_partition)
        if target is None:
            new_state = self._cancel_move(topic_partition, state)
        else:
            self._validate_assignment(target, None)
            if is_guarded and len(target) != state.size:
                raise Fault(
                    "INVALID_REPLICATION_FACTOR",
                    f"The replication factor is changed from {state.size} to {len(target)}",
                )
            new_state = start_reassignment(state, target, self.active)
            if new_state.moving:
                new_state = replace(new_state, ticks=self.move_ticks)
                new_state = new_state if new_state.ticks else self._catch_up(new_state)
        self.topics[topic_partition.topic].partitions[topic_partition.partition] = new_state

    def _cancel_move(self, topic_partition: TopicPartition, state: PartitionState) -> PartitionState:
        if not state.moving:
            raise Fault("NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress.")
        if needs_unclean_election(state) and not self.configs.is_topic_flag_set(
            topic_partition.topic, "unclean.leader.election.enable"
        ):
            raise Fault(
                "INVALID_REPLICA_ASSIGNMENT",
                f"Unable to revert partition assignment for "
                f"{topic_partition.topic}:{topic_partition.partition} because it "
                "would require an unclean leader election.",
            )
        return cancel_move(state, self.active)

    def _catch_up(self, state: PartitionState) -> PartitionState:
        return catch_up(state, self.active.difference(list_lagging_replicas(state, self.stalled)))

    def tick(self) -> None:
        """Advance time by one tick: replicas of active brokers join the ISR once they are copied."""
        copying = self.active - self.stalled
        for topic in self.topics.values():
            for number, p in enumerate(topic.partitions):
                is_in_sync = p.leader is not None and not p.moving and len(p.isr) == len(p.replicas)
                if not is_in_sync:
                    topic.partitions[number] = self._catch_up(advance_copies(p, copying))

    def moves(self, wanted: Iterable[str] | None) -> Mapping[TopicPartition, Move]:
        """Handle ListPartitionReassignments. Omit topics that do not exist."""
        found = self.topics.keys() if wanted is None else [n for n in wanted if n in self.topics]
        return {
            TopicPartition(name, index): Move(p.replicas, p.adding, p.removing)
            for name in sorted(found)
            for index, p in enumerate(self.topics[name].partitions)
            if p.moving
        }

    # leaders

    def elect(self, where: TopicPartition) -> None:
        """Handle ElectLeaders for one partition. Nothing changes if the preferred leader already leads."""
        topic = self.topics.get(where.topic)
        if topic is None:
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", f"No such topic as {where.topic}")
        if not 0 <= where.partition < len(topic.partitions):
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", f"No such partition as {where}")
        state = topic.partitions[where.partition]
        preferred = state.replicas[0]
        if preferred != state.leader and preferred not in self.active.intersection(state.isr):
            raise Fault("PREFERRED_LEADER_NOT_AVAILABLE", "The preferred leader was not available.")
        topic.partitions[where.partition] = replace(state, leader=preferred)

    # brokers

    def set_broker(self, broker: BrokerState) -> None:
        """Register or change a broker. An inactive broker leaves every ISR that has other members."""
        self.brokers[broker.id] = broker
        for topic in self.topics.values():
            topic.partitions = [self._drop_lost_replicas(p) for p in topic.partitions]

    def unregister_broker(self, broker: int) -> None:
        """Remove a broker, which then leaves every ISR that has other members."""
        del self.brokers[broker]
        for topic in self.topics.values():
            topic.partitions = [self._drop_lost_replicas(p) for p in topic.partitions]

    def _drop_lost_replicas(self, state: PartitionState) -> PartitionState:
        isr = tuple(r for r in state.isr if r in self.active) or state.isr[:1]
        return complete_move(replace(state, isr=isr), self.active)

    def get_effective_min_isr(self, name: str) -> int:
        """Return the effective min.insync.replicas.

        With ELR, it is at most the replica count of partition 0.
        """
        value = int(self.configs.describe_topic_key(name, MIN_ISR).value or "1")
        return min(value, len(self.topics[name].partitions[0].replicas)) if self.configs.elr else value

    # quotas

    def alter_quota(
        self, entity: QuotaEntity, limits: Mapping[str, float | None], *, validate_only: bool
    ) -> None:
        """Handle AlterClientQuotas for one entity atomically."""
        validate_quota(entity, limits)
        if validate_only:
            return
        merged = {**self.quotas.get(entity, {}), **limits}
        remaining = {key: value for key, value in merged.items() if value is not None}
        if remaining:
            self.quotas[entity] = remaining
        else:
            self.quotas.pop(entity, None)

    # log directories

    def log_dirs(self, wanted: Iterable[str] | None) -> dict[int, tuple[LogDir, ...]]:
        """Handle DescribeLogDirs on every broker that is not fenced. Omit topics that do not exist."""
        sizes: dict[int, dict[TopicPartition, int]] = {
            broker.id: {} for broker in self.brokers.values() if not broker.fenced
        }
        for name in sorted(self.topics.keys() if wanted is None else self.topics.keys() & set(wanted)):
            topic = self.topics[name]
            full = topic.records * RECORD_BYTES // len(topic.partitions)
            for index, state in enumerate(topic.partitions):
                for broker in sizes.keys() & set(state.replicas):
                    sizes[broker][TopicPartition(name, index)] = compute_copied_size(state, broker, full)
        return {
            broker: (
                LogDir(LOG_DIR, held, {}, total=self.disk_sizes.get(broker), usable=self.usable.get(broker)),
            )
            for broker, held in sorted(sizes.items())
        }

    def move_log_dir(self, topic_partition: TopicPartition, broker: int, path: str) -> None:
        """Handle AlterReplicaLogDirs for one replica. Errors that a broker returns have no message."""
        if broker not in self.brokers or self.brokers[broker].fenced:
            raise Fault("BROKER_NOT_AVAILABLE", f"broker {broker} is not available", FaultKind.RETRIABLE)
        if path != LOG_DIR:
            raise Fault("LOG_DIR_NOT_FOUND", "")
        topic = self.topics.get(topic_partition.topic)
        if topic is None or not 0 <= topic_partition.partition < len(topic.partitions):
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", "")
        if broker not in topic.partitions[topic_partition.partition].replicas:
            raise Fault("REPLICA_NOT_AVAILABLE", "")
