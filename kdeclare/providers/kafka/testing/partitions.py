"""The state of one partition, and the functions that place its replicas and start, end or cancel its moves.

The functions are pure and modeled on PartitionChangeBuilder, PartitionReassignmentReplicas and
PartitionReassignmentRevert of Apache Kafka (KIP-455, KIP-860).

Replicas are placed by the rules of Kafka's StripedReplicaPlacer, but with different random numbers. Each rack
gets one replica in turn, and each partition starts one rack later than the previous partition. Brokers that
are not fenced come first, and a fenced broker is never the leader.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace
from random import Random
from typing import Protocol

from kdeclare.core.frozen_dataclass import dataclass

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition. ``replicas`` contains the target replicas, then the replicas that are being removed.

    ticks: the number of ticks until a replica that is being added is completely copied.
    copied: for each broker to which a replica is being copied, the number of completed ticks.
    """

    replicas: Ids
    isr: Ids
    leader: int | None
    adding: Ids = ()
    removing: Ids = ()
    ticks: int = 0
    copied: tuple[tuple[int, int], ...] = ()

    @property
    def moving(self) -> bool:
        """Whether ListPartitionReassignments lists the partition."""
        return bool(self.adding or self.removing)

    @property
    def size(self) -> int:
        """The replication factor for the guard (KIP-860). During a move, the target replicas are counted."""
        kept = set(self.replicas) | set(self.adding)
        return len(kept - set(self.removing)) if self.moving else len(self.replicas)


def remove_replicas(replicas: Ids, removed: Collection[int]) -> Ids:
    """Return ``replicas`` without ``removed``, in the same order."""
    return tuple(r for r in replicas if r not in removed)


def elect_leader(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Keep the leader if it is in sync and active. Otherwise, elect the first in-sync, active replica."""

    def can_lead(broker: int) -> bool:
        return broker in state.isr and broker in active and broker in state.replicas

    if state.leader is not None and can_lead(state.leader):
        return state
    return replace(state, leader=next((r for r in state.replicas if can_lead(r)), None))


def start_reassignment(state: PartitionState, target: Ids, active: Collection[int]) -> PartitionState:
    """Return the partition after a valid AlterPartitionReassignments request with ``target``.

    As in ReplicationControlManager.changePartitionReassignment, an empty new list of adding (or removing)
    replicas does not replace the stored list.
    """
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(state.replicas)))
    started = replace(
        state,
        replicas=target + removing,
        adding=adding or state.adding,
        removing=removing or state.removing,
        copied=tuple((broker, done) for broker, done in state.copied if broker in (adding or state.adding)),
    )
    return complete_move(started, active)


def complete_move(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Finish the move if Kafka would finish it (maybeCompleteReassignment), and elect a leader."""
    if state.moving:
        isr = remove_replicas(state.isr, state.removing)
        replicas = remove_replicas(state.replicas, state.removing)
        is_stuck = bool(state.removing) and not (isr and replicas)
        shrinks = len(state.adding) < len(state.removing)
        if not is_stuck and set(isr) >= set(state.adding) and (not shrinks or set(isr) >= set(replicas)):
            state = replace(state, replicas=replicas, isr=isr, adding=(), removing=(), ticks=0, copied=())
    return elect_leader(state, active)


def catch_up(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Add every active replica to the ISR. If all added replicas are then in sync, the move can finish."""
    new_isr = state.isr + tuple(r for r in state.replicas if r not in state.isr and r in active)
    return complete_move(replace(state, isr=new_isr), active)


def advance_copies(state: PartitionState, copying_brokers: Collection[int]) -> PartitionState:
    """Advance copying by one tick, for the replicas that are being added on ``copying_brokers``."""
    copied_ticks = dict(state.copied)
    for broker in state.adding:
        if broker in copying_brokers and copied_ticks.get(broker, 0) < state.ticks:
            copied_ticks[broker] = copied_ticks.get(broker, 0) + 1
    return replace(state, copied=tuple(sorted(copied_ticks.items())))


def list_lagging_replicas(state: PartitionState, stalled: Collection[int]) -> Ids:
    """Return the replicas that are being added and cannot join the ISR yet."""
    copied_ticks = dict(state.copied)
    return tuple(
        broker
        for broker in remove_replicas(state.adding, state.isr)
        if broker in stalled or copied_ticks.get(broker, 0) < state.ticks
    )


def compute_copied_size(state: PartitionState, broker: int, size: int) -> int:
    """Return the copied size of a replica: ``size``, or less while the replica is being added."""
    if broker not in remove_replicas(state.adding, state.isr):
        return size
    return size * dict(state.copied).get(broker, 0) // max(1, state.ticks)


def needs_unclean_election(state: PartitionState) -> bool:
    """Return whether cancelling the move would leave no in-sync replica."""
    return not remove_replicas(state.isr, state.adding)


def cancel_move(state: PartitionState, active: Collection[int]) -> PartitionState:
    """Remove replicas that are being added, without changing the order (PartitionReassignmentRevert)."""
    replicas = remove_replicas(state.replicas, state.adding)
    isr = remove_replicas(state.isr, state.adding) or replicas[:1]
    return elect_leader(PartitionState(replicas=replicas, isr=isr, leader=state.leader), active)


class PlaceableBroker(Protocol):
    """The properties of a broker that determine where replicas are placed."""

    @property
    def id(self) -> int: ...
    @property
    def rack(self) -> str | None: ...
    @property
    def fenced(self) -> bool: ...


class PlacementError(ValueError):
    """The error for an impossible placement, with Kafka's message."""


@dataclass
class _Ring:
    """Brokers that are chosen in turn. Every round starts one position later."""

    brokers: list[int] = field(default_factory=list)
    round: int = 0
    offset: int = 0
    index: int = 0

    def take_next(self, round_: int) -> int | None:
        if not self.brokers:
            return None
        if self.round != round_:
            self.round, self.index = round_, 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.index >= len(self.brokers):
            return None
        self.index += 1
        return self.brokers[(self.index - 1 + self.offset) % len(self.brokers)]


@dataclass
class _Rack:
    active: _Ring = field(default_factory=_Ring)
    fenced: _Ring = field(default_factory=_Ring)

    def take_next(self, round_: int) -> int | None:
        broker = self.active.take_next(round_)
        return self.fenced.take_next(round_) if broker is None else broker


class _Racks:
    def __init__(self, brokers: Iterable[PlaceableBroker], random: Random) -> None:
        self._random = random
        self._racks: dict[str | None, _Rack] = {}
        self._total = self._active = 0
        for broker in sorted(brokers, key=lambda b: b.id):
            rack = self._racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.active).brokers.append(broker.id)
            self._total += 1
            self._active += not broker.fenced
        self._names = list(self._racks)
        self._round = self._offset = 0
        self._shuffle()

    def _shuffle(self) -> None:
        self._random.shuffle(self._names)
        for rack in self._racks.values():
            for ring in (rack.active, rack.fenced):
                self._random.shuffle(ring.brokers)
                ring.round = ring.index = 0
                ring.offset = 0

    def check(self, factor: int) -> None:
        if factor <= 0:
            raise PlacementError(
                f"Invalid replication factor {factor}: the replication factor must be positive."
            )
        if not self._active:
            raise PlacementError("All brokers are currently fenced.")
        if factor > self._total:
            raise PlacementError(
                f"The target replication factor of {factor} cannot be reached because only "
                f"{self._total} broker(s) are registered or some brokers have all their log directories "
                "cordoned."
            )

    def place(self, factor: int) -> tuple[int, ...]:
        if self._round == self._active:
            self._shuffle()
            self._round = 0
        if self._offset == len(self._names):
            self._offset = 0
        first = self._offset
        while (leader := self._racks[self._names[first]].active.take_next(self._round)) is None:
            first = (first + 1) % len(self._names)
        placed = [leader]
        skip: int | None = first
        at = self._offset
        while len(placed) < factor:
            if at == skip:
                skip = None  # this rack already holds the leader
            else:
                found = self._racks[self._names[at]].take_next(self._round)
                if found is not None:
                    placed.append(found)
            at = (at + 1) % len(self._names)
        self._round += 1
        self._offset += 1
        return tuple(placed)


def place_replicas(
    brokers: Sequence[PlaceableBroker], partitions: int, factor: int, random: Random
) -> tuple[tuple[int, ...], ...]:
    """Place replicas for a number of partitions. Raises PlacementError."""
    racks = _Racks(brokers, random)
    racks.check(factor)
    return tuple(racks.place(factor) for _ in range(partitions))
